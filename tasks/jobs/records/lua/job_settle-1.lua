-- Ends a run of a job: with a final status, or as Scheduled if it is to run again, which is a new revision.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV[1] job  ARGV[2] task  ARGV[3] node  ARGV[4] revision  ARGV[5] runs so far
-- ARGV[6] status
-- ARGV[7] us until it shall run again; 0 for at once
-- ARGV[8] message
-- returns the revision it has now; '' if the run is not this node's any more, and nothing was changed, or if it was
--         asked to stop and shall not run again: then it ends as Stopped
--
-- To end it twice in the same way is to end it once: an answer may be lost. A run that was taken for dead, and given to
-- another, can change nothing when it comes back. A run that Redis has forgotten ends as if it had not: whether another
-- had its end before is decided by the database, which takes no report of a job that has ended.
local jobs = KEYS[1]
local job, task, node, revision, runs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local status, delay, message = ARGV[6], tonumber(ARGV[7]), ARGV[8]

local record = record_of(jobs, job)
local it = standing(record, node, revision)
if it == 'other' then
    local is_the_same = record.node == node and record.revision == revision and record.status == status
    return is_the_same and revision or ''
end
if it == 'forgotten' then
    record = running(task, node, revision, runs)
end
local runs_again = CODE[status] < 3
local was_asked = runs_again and record.asked == '1'
if was_asked then
    status, delay = 'Stopped', 0
elseif runs_again then
    record.revision, record.node, record.sent = successor(revision), '', '0'
end
record.status, record.message, record.checked_in = status, message, text(now_us() + delay)
write_record(jobs, job, record)
return was_asked and '' or record.revision
