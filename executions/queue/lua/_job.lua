-- Put before the scripts about jobs, after _shared.lua: how the record of a job is read and written.
--
-- REVISION|STATUS|RUNS|CHECKED_IN|NODE|TASK|ACKNOWLEDGED|SENT|MESSAGE, see ../job_record.py

local CODE = { Pending = 0, Scheduled = 1, Running = 2, Stopped = 3, Error = 3, Success = 3 }
local PATTERN = '^(%d+)|(%a+)|(%d+)|(%d+)|([^|]*)|(%d+)|([^|]*)|([01])|(.*)$'

-- nil if there is none, or none that can be read.
local function record_of(jobs, job)
    local revision, status, runs, checked_in, node, task, acknowledged, sent, message =
        string.match(redis.call('HGET', jobs, job) or '', PATTERN)
    if not revision or not CODE[status] then
        return nil
    end
    return {
        revision = tonumber(revision), status = status, code = CODE[status], runs = tonumber(runs),
        checked_in = checked_in, node = node, task = task, acknowledged = acknowledged, sent = sent,
        message = message,
    }
end

local function write_record(jobs, job, r)
    redis.call('HSET', jobs, job, table.concat({
        text(r.revision), r.status, text(r.runs), r.checked_in, r.node, r.task, r.acknowledged, r.sent, r.message,
    }, '|'))
end

-- The record of the run that ARGV[1..6] tell: job, task, node, revision, runs so far, begun (us). Second: whether
-- this Redis has no record of the job at all. It may have been emptied since the run began: then the run goes on, and
-- its record is as it was at its beginning. Else the run is over, and was forgotten.
local function run_of(jobs, since_key)
    local job, task, node, revision = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
    local runs, begun = tonumber(ARGV[5]), tonumber(ARGV[6])
    local record = record_of(jobs, job)
    if record then
        return record.node == node and record.revision == revision and record or nil, false
    end
    if remembers_since(since_key) <= begun then
        return nil, true
    end
    return {
        revision = revision, status = 'Running', code = 2, runs = runs, checked_in = text(now_us()), node = node,
        task = task, acknowledged = '', sent = '1', message = '',
    }, true
end

-- Whether a node gave a sign of life within `ttl`.
local function is_live(nodes, node, ttl)
    local last = tonumber(redis.call('ZSCORE', nodes, node) or nil)
    return last ~= nil and math.abs(now_us() - last) <= ttl
end
