-- Undoes the beginning of a run whose code was never called.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV[1] job       the job
-- ARGV[2] node      the node that began the run
-- ARGV[3] revision  of the run
-- ARGV[4] record    the record to write in its place; '' for none
-- returns 1 if it was undone; 0 if the job belongs to another run by now
--
-- include _job
local jobs = KEYS[1]
local job, node, revision, before = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local record = record_of(jobs, job)
if not record or record.status ~= 'Running' or record.node ~= node or record.revision ~= revision then
    return 0
end
if before == '' then
    redis.call('HDEL', jobs, job)
else
    redis.call('HSET', jobs, job, before)
end
return 1
