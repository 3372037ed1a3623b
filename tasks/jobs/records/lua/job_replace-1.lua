-- Replaces records of jobs, each only if it is still the record that the caller read.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV    triples: job, the record that was read, the new record; empty to delete it
-- returns for each record 1 if it was replaced, else 0
local jobs = KEYS[1]

local replaced = {}
for i = 1, #ARGV, 3 do
    local job, seen, new = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local is_same = redis.call('HGET', jobs, job) == seen
    if is_same and new == '' then
        redis.call('HDEL', jobs, job)
    elseif is_same then
        redis.call('HSET', jobs, job, new)
    end
    replaced[#replaced + 1] = is_same and 1 or 0
end
return replaced
