-- The record of a job: how it is read and written.
--
-- REVISION|STATUS|RUNS|CHECKED_IN|RENEWED|NODE|TASK|ACKNOWLEDGED|SENT|ASKED|MESSAGE, see ../record.py
--
-- include _nodes

local CODE = { Pending = 0, Scheduled = 1, Running = 2, Stopped = 3, Error = 3, Success = 3 }
local PATTERN = '^(%d+)|(%a+)|(%d+)|(%d+)|(%d+)|([^|]*)|(%d+)|([^|]*)|([01])|([01])|(.*)$'
-- The node of a run that the database knows of and Redis does not. If a process has this run, it replaces the record.
local UNKNOWN = 'unknown'
-- The field of `jobs` that holds the memory of this Redis. It cannot be a job, because no job has an empty id.
local MEMORY = ''

-- Revisions are decimal text: they go up to 2^61, and a Lua number is exact only up to 2^53.
local function is_later(revision, other)
    return #revision > #other or (#revision == #other and revision > other)
end

local function successor(revision)
    local head, nines = string.match(revision, '^(.-)(9*)$')
    local zeros = string.rep('0', #nines)
    if head == '' then
        return '1' .. zeros
    end
    return string.sub(head, 1, -2) .. text(tonumber(string.sub(head, -1)) + 1) .. zeros
end

-- Return the revision of the run after this one. `are_unix` is '1' if revisions are unix seconds: then it is the second
-- of now, unless the clock stands still or goes back (../../revisions.py).
local function next_revision(revision, are_unix)
    local following = successor(revision)
    local second = text(math.floor(now_us() / 1000000))
    return are_unix == '1' and is_later(second, following) and second or following
end

-- Return the record of a job; nil if there is none, or an unreadable one.
local function record_of(jobs, job)
    local revision, status, runs, checked_in, renewed, node, task, acknowledged, sent, asked, message =
        string.match(redis.call('HGET', jobs, job) or '', PATTERN)
    if not revision or not CODE[status] then
        return nil
    end
    return {
        revision = revision, status = status, code = CODE[status], runs = tonumber(runs), checked_in = checked_in,
        renewed = tonumber(renewed), node = node, task = task, acknowledged = acknowledged, sent = sent,
        asked = asked, message = message,
    }
end

local function text_of(r)
    return table.concat({
        r.revision, r.status, text(r.runs), r.checked_in, text(r.renewed), r.node, r.task, r.acknowledged, r.sent,
        r.asked, r.message,
    }, '|')
end

local function write_record(jobs, job, record)
    redis.call('HSET', jobs, job, text_of(record))
end

-- Return the record of a run that has just begun, or that goes on although Redis has lost its record.
local function running(task, node, revision, runs)
    return {
        revision = revision, status = 'Running', code = 2, runs = runs, checked_in = text(now_us()),
        renewed = now_us(), node = node, task = task, acknowledged = '', sent = '1', asked = '0', message = '',
    }
end

-- Whether this run (its node, its revision) owns the record of its job: 'known' if it does, 'forgotten' if there is no
-- record or an older one, 'other' if the job has ended or belongs to another run.
local function standing(record, node, revision)
    if not record or is_later(revision, record.revision) then
        return 'forgotten'
    end
    if record.revision ~= revision or record.code == 3 then
        return 'other'
    end
    -- a run has the revision in which its job waited, so a record that waits in that revision is older than the run
    if record.node == UNKNOWN or record.node == '' then
        return 'forgotten'
    end
    return record.node == node and 'known' or 'other'
end

-- Return the revision of the arguments that a job has asked for (../arguments.py); '0' if Redis has none.
local function requested_revision(requests, job)
    return string.match(redis.call('HGET', requests, job) or '', '^%d+|(%d+)|') or '0'
end

-- The memory of this Redis: its epoch, and how often it has been advanced. The database notes both. It is stored among
-- the records, so it is lost whenever they are, and then a new epoch begins.
local function begin_epoch(jobs, presence)
    local epoch = text(now_us())
    redis.call('HSET', jobs, MEMORY, epoch .. '|0')
    begin_presence(presence)
    return epoch, 0
end

local function memory_of(jobs, presence)
    local epoch, sequence = string.match(redis.call('HGET', jobs, MEMORY) or '', '^(%d+)|(%d+)$')
    if not epoch then
        return begin_epoch(jobs, presence)
    end
    return epoch, tonumber(sequence)
end
