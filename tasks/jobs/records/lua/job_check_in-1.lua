-- Records the message of a run, and tells the run whether it should stop.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV[1] job       the job
-- ARGV[2] node      the node that runs it
-- ARGV[3] revision  of the run
-- ARGV[4] message   what the job says; if empty, the last message stays
-- returns 1 if the run should stop, because it was asked to or because the job belongs to another run by now
--
-- A run whose record was lost goes on: its heartbeat asks the database whether it is still valid (job_renew-1.lua).
--
-- include _job
local jobs = KEYS[1]
local job, node, revision, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local record = record_of(jobs, job)
local lease = standing(record, node, revision)
if lease ~= 'known' then
    return lease == 'other' and 1 or 0
end
record.checked_in = text(now_us())
if message ~= '' then
    record.message = message
end
write_record(jobs, job, record)
return tonumber(record.asked)
