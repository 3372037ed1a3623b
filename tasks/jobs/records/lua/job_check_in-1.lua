-- Records what a run says of itself, and tells it whether it should stop.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV[1] job  ARGV[2] node  ARGV[3] revision
-- ARGV[4] message; empty leaves the last one
-- returns 1 if it should stop: it was asked to, or the job belongs to another run by now
--
-- A run that Redis has forgotten goes on: its heartbeat asks the database whether it stands (job_renew-1.lua).
local jobs = KEYS[1]
local job, node, revision, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local record = record_of(jobs, job)
local it = standing(record, node, revision)
if it ~= 'known' then
    return it == 'other' and 1 or 0
end
record.checked_in = text(now_us())
if message ~= '' then
    record.message = message
end
write_record(jobs, job, record)
return tonumber(record.asked)
