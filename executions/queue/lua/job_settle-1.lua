-- Ends a run of a job: with a final status, or as Scheduled if it is to run again, which is a new revision.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV[1] job  ARGV[2] node  ARGV[3] revision
-- ARGV[4] status
-- ARGV[5] us until it shall run again; 0 for at once
-- ARGV[6] message
-- returns the revision it has now; -1 if the run is not this node's any more, and nothing was changed
--
-- To end it twice in the same way is to end it once: an answer may be lost. A run that was taken for dead, and
-- given to another, can change nothing when it comes back.
local jobs = KEYS[1]
local job, node, revision = ARGV[1], ARGV[2], tonumber(ARGV[3])
local status, delay, message = ARGV[4], tonumber(ARGV[5]), ARGV[6]

local record = record_of(jobs, job)
if not record or record.node ~= node or record.revision ~= revision then
    return -1
end
if record.code == 3 then
    return record.status == status and revision or -1
end
record.status, record.message = status, message
record.checked_in = text(now_us() + delay)
if CODE[status] < 3 then
    record.revision, record.node, record.sent = revision + 1, '', '0'
end
write_record(jobs, job, record)
return record.revision
