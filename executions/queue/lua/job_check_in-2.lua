-- Records that a run of a job goes on; and tells it whether it should stop.
--
-- KEYS[1] jobs   hash  JOB -> its record, while it is in progress
-- KEYS[2] stops  zset  JOB that was stopped, by when (us)
-- ARGV[1] job  ARGV[2] node  ARGV[3] revision
-- ARGV[4] message; empty leaves the last one
-- returns {is still its run, should stop}; a run that was given to another node is told to stop, too
local jobs, stops = KEYS[1], KEYS[2]
local job, node, revision, message = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local record = record_of(jobs, job)
if not record or record.node ~= node or record.revision ~= revision or record.code == 3 then
    return { 0, 1 }
end
record.checked_in = text(now_us())
if message ~= '' then
    record.message = message
end
write_record(jobs, job, record)
return { 1, redis.call('ZSCORE', stops, job) and 1 or 0 }
