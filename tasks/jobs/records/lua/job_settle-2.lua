-- Ends a run of a job: with a final status, or as Scheduled if the job is to run again, which is a new revision.
--
-- KEYS[1] jobs       hash  JOB -> its record, while it is in progress
-- KEYS[2] arguments  hash  JOB -> TASK|REVISION|JSON of what it asked for, until the database has it
-- ARGV[1] job       the job
-- ARGV[2] task      the row its reports are for
-- ARGV[3] node      the node that runs it
-- ARGV[4] revision  of the run
-- ARGV[5] runs      so far
-- ARGV[6] status    in which the run ends
-- ARGV[7] delay     us until the job shall run again; 0 for at once
-- ARGV[8] message   the last message of the run
-- ARGV[9] are_unix  '1' if revisions are unix seconds
-- ARGV[10] arguments  JSON, if the job shall run again with others than before; else ''
-- ARGV[11] given  the revision of the arguments of the run; the next revision is later than that, too
-- returns the new revision of the job; '' if the run no longer belongs to this node, so that nothing was changed, or
--         if it was asked to stop and so does not run again: then it ends as Stopped. Its arguments are kept all the
--         same, because it may be resumed
--
-- To end a run in the same way twice is idempotent, because an answer may be lost. A run that was taken for dead, and
-- whose job was given to another node, can change nothing when it comes back. A run whose record was lost ends as if
-- it had one; if another run has ended the job before, the database refuses this report, as it does for every job that
-- has ended.
--
-- include _job
local jobs, requests = KEYS[1], KEYS[2]
local job, task, node, revision, runs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local status, delay, message = ARGV[6], tonumber(ARGV[7]), ARGV[8]
local are_unix, arguments, given = ARGV[9], ARGV[10], ARGV[11]

local record = record_of(jobs, job)
local lease = standing(record, node, revision)
if lease == 'other' then
    local is_the_same = record.node == node and record.revision == revision and record.status == status
    return is_the_same and revision or ''
end
if lease == 'forgotten' then
    record = running(task, node, revision, runs)
end
local following = next_revision(is_later(given, revision) and given or revision, are_unix)
if arguments ~= '' and is_later(following, requested_revision(requests, job)) then
    redis.call('HSET', requests, job, table.concat({ task, following, arguments }, '|'))
end
local runs_again = CODE[status] < 3
local was_asked = runs_again and record.asked == '1'
if was_asked then
    status, delay = 'Stopped', 0
elseif runs_again then
    record.revision, record.node, record.sent = following, '', '0'
end
record.status, record.message, record.checked_in = status, message, text(now_us() + delay)
write_record(jobs, job, record)
return was_asked and '' or record.revision
