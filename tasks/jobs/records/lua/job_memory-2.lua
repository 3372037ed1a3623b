-- Compares what this Redis remembers with what the database has noted of it.
--
-- A Redis that was emptied, or that came back older than it was, begins a new epoch.
--
-- KEYS[1] jobs      hash  JOB -> its record, while it is in progress; and EPOCH|SEQUENCE in the empty field
-- KEYS[2] presence  hash  since when signs of life have come without a gap (us), the last one, the server
-- ARGV[1] node ttl, us
-- ARGV[2] the epoch the database has noted; '' for a caller that does not ask it
-- ARGV[3] the sequence it has noted
-- returns {now (us), epoch (us: when it began), sequence, 1 if silence means death}
--
-- Each call advances the sequence, and its caller notes it in the database. What is below the noted epoch, or below
-- the noted sequence of the same epoch, is older. Epochs are moments, so a later one is new.
local jobs, presence = KEYS[1], KEYS[2]
local ttl, noted_epoch, noted_sequence = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local epoch, sequence = memory_of(jobs, presence)
local is_older = noted_epoch == epoch and sequence < noted_sequence
local is_from_before = noted_epoch ~= '' and tonumber(epoch) < tonumber(noted_epoch)
if is_older or is_from_before then
    epoch, sequence = begin_epoch(jobs, presence)
end
sequence = sequence + 1
redis.call('HSET', jobs, MEMORY, epoch .. '|' .. text(sequence))
return { text(now_us()), epoch, sequence, is_settled(presence, ttl) and 1 or 0 }
