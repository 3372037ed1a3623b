-- Begins a run of a job, if it may run here and now, and records that.
--
-- KEYS[1] jobs   hash    JOB -> its record, while it is in progress
-- KEYS[2] nodes  zset    NODE by its last sign of life (us)
-- KEYS[3] stops  zset    JOB that was stopped, by when (us)
-- KEYS[4] doubts  zset   JOB whose message may come twice, by when it was sent (us)
-- KEYS[5] since  string  since when this Redis remembers (us): it was empty then
-- ARGV[1] job  ARGV[2] task  ARGV[3] node
-- ARGV[4] node ttl, us
-- ARGV[5] revision, and
-- ARGV[6] runs so far: of a job without a record
-- ARGV[7] how often it may run
-- ARGV[8] when its message was published, us; 0 if the database has been asked; 1 for a message that may be a
--         second one, which is always asked for
-- ARGV[9] for how long stops and doubts are remembered, us
-- ARGV[10] the message of a job that has run too often
-- returns {verdict, revision, runs, now (us)}
--
--   go         it runs now, in this revision
--   ask        it has no record, and this Redis may have forgotten one: ask the database, and come again
--   alive      another run of it is alive: this message came twice
--   over       it has a final status
--   stopped    it was stopped before it began
--   exhausted  it has run too often: its final status is Error, in this revision
--
-- What if the process dies after this: the node falls silent, and the job is given back. What if somebody has tried a
-- job again whose end has not been acknowledged yet: its message is of a newer revision, and the end is of the past.
local jobs, nodes, stops, doubts, since_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local job, task, node, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local revision, runs, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local published, memory, why_exhausted = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]

local now, since = now_us(), remembers_since(since_key)
sign_of_life(nodes, node)

local function answer(verdict)
    return { verdict, revision, runs, text(now) }
end

local known = record_of(jobs, job)
if known and known.code == 3 then
    if known.revision >= revision then
        revision = known.revision
        return answer('over')
    end
    known = nil
end
if redis.call('ZSCORE', stops, job) then
    revision = known and known.revision or revision
    return answer('stopped')
end
if known then
    revision, runs = known.revision, known.runs
    if known.status == 'Running' then
        if is_live(nodes, known.node, ttl) then
            return answer('alive')
        end
        revision = revision + 1
    end
elseif published > 0 and (published < math.max(since, now - memory) or redis.call('ZSCORE', doubts, job)) then
    return answer('ask')
end

local record = {
    revision = revision, status = 'Running', runs = runs + 1, checked_in = text(now), node = node, task = task,
    acknowledged = known and known.acknowledged or '', sent = '1', message = '',
}
local verdict = 'go'
if runs >= most then
    verdict, record.status, record.runs, record.message = 'exhausted', 'Error', runs, why_exhausted
end
runs = record.runs
write_record(jobs, job, record)
return answer(verdict)
