-- Ends a run of a job: with a final status, or as Scheduled if it is to run again, which is a new revision.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- KEYS[2] since  string  since when this Redis remembers (us): it was empty then
-- KEYS[3] stops  zset  JOB that was stopped, by when (us)
-- ARGV[1] job  ARGV[2] task  ARGV[3] node  ARGV[4] revision  ARGV[5] runs so far
-- ARGV[6] when the run began, us
-- ARGV[7] status
-- ARGV[8] us until it shall run again; 0 for at once
-- ARGV[9] message
-- returns the revision it has now; -1 if the run is not this node's any more, and nothing was changed, or if it was
--         stopped and shall not run again: then it ends as Stopped
--
-- To end it twice in the same way is to end it once: an answer may be lost. A run that was taken for dead, and
-- given to another, can change nothing when it comes back. One that nobody knows anything of may have ended: the
-- database knows whether another had its end before.
local jobs, since_key, stops = KEYS[1], KEYS[2], KEYS[3]
local job, revision = ARGV[1], tonumber(ARGV[4])
local status, delay, message = ARGV[7], tonumber(ARGV[8]), ARGV[9]

local record, is_gone = run_of(jobs, since_key)
if not record then
    return is_gone and CODE[status] == 3 and revision or -1
end
if record.code == 3 then
    return record.status == status and revision or -1
end
local runs_again = CODE[status] < 3
local was_stopped = runs_again and redis.call('ZSCORE', stops, job)
if was_stopped then
    status, delay = 'Stopped', 0
elseif runs_again then
    record.revision, record.node, record.sent = revision + 1, '', '0'
end
record.status, record.message, record.checked_in = status, message, text(now_us() + delay)
write_record(jobs, job, record)
return was_stopped and -1 or record.revision
