-- Compares the memory of this Redis with the note of it in the database.
--
-- A Redis that was emptied, or that came back with older data, begins a new epoch.
--
-- KEYS[1] jobs      hash  JOB -> its record, while it is in progress; and EPOCH|SEQUENCE in the empty field
-- KEYS[2] presence  hash  since when heartbeats have come without a gap (us), the last one, the server
-- ARGV[1] ttl             node ttl, us
-- ARGV[2] noted_epoch     the epoch that the database has noted; '' if the caller has not read it
-- ARGV[3] noted_sequence  the sequence that the database has noted
-- returns {now (us), epoch (us: when it began), sequence, 1 if a silent node or run is dead}
--
-- Each call advances the sequence, and its caller notes it in the database. A Redis below the noted epoch, or in the
-- noted epoch below the noted sequence, has older data. Epochs are moments, so a later epoch is a new one.
--
-- include _job
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
