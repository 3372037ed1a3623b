-- Begins a run of a job, unless Redis knows a reason against it, and records the run. The caller asks the database
-- next, because only the database knows whether the job has ended.
--
-- KEYS[1] jobs      hash  JOB -> its record, while it is in progress
-- KEYS[2] nodes     zset  NODE by its last heartbeat (us)
-- KEYS[3] presence  hash  since when heartbeats have come without a gap (us), the last one, the server
-- KEYS[4] arguments hash  JOB -> TASK|REVISION|JSON of what it asked for, until the database has it
-- ARGV[1] job       the job
-- ARGV[2] task      the row its reports are for
-- ARGV[3] node      the node that begins the run
-- ARGV[4] ttl       node ttl, us
-- ARGV[5] revision  of the message; used if the job has no record, or an older one
-- ARGV[6] runs      so far, as the message says; used like the revision
-- ARGV[7] are_unix  '1' if revisions are unix seconds
-- returns {verdict, revision, runs, the record that was there before; '' if there was none,
--         what the job asked for; '' if the database has it}
--
--   go         the job runs now, in this revision, unless the database objects
--   alive      another run of the job is alive, or may be: this message came twice
--   over       the job has a final status
--
-- What if the process dies after this: its lease is not renewed, and recovery releases the job. What if the job was
-- retried before the end of its last run was acknowledged: the message of the retry has a higher revision, so the old
-- final record is ignored.
--
-- include _job
local jobs, nodes, presence, requests = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local job, task, node, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local revision, runs, are_unix = ARGV[5], tonumber(ARGV[6]), ARGV[7]

heartbeat(nodes, node)
local known = record_of(jobs, job)
local before = known and text_of(known) or ''

if known and known.code == 3 then
    if not is_later(revision, known.revision) then
        return { 'over', known.revision, runs, before, '' }
    end
    known = nil
end
if known and is_later(revision, known.revision) then
    known = nil
end
if known then
    revision, runs = known.revision, known.runs
    if known.status == 'Running' then
        if math.abs(now_us() - known.renewed) <= ttl or not is_settled(presence, ttl) then
            return { 'alive', revision, runs, before, '' }
        end
        revision = next_revision(revision, are_unix)
    end
end

local record = running(task, node, revision, runs + 1)
record.acknowledged = known and known.acknowledged or ''
write_record(jobs, job, record)
return { 'go', revision, record.runs, before, redis.call('HGET', requests, job) or '' }
