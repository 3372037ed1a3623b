-- Prepended to every script: the clock of Redis in microseconds, stamps, live tokens, and the rule that tells whether
-- a silent node is dead.

-- Lua would write a large number as 1.7e+15.
local function text(number)
    return string.format('%.0f', number)
end

-- Read once in a script, because every call of redis.call costs Redis time.
local clock = nil
local function now_us()
    if not clock then
        local time = redis.call('TIME')
        clock = tonumber(time[1]) * 1000000 + tonumber(time[2])
    end
    return clock
end

-- Return a stamp that was never issued before: the time, or the last stamp plus 1 or 2 if the clock stands still or
-- goes back a little. So two claims never share a token. The last bit tells what the holder does: an even stamp
-- (WAITS) is a claim that waits for a worker, an odd stamp (WORKS) is a claim that a process works on. Only a claim
-- that was worked on counts as an attempt when its node dies. `last` is the last stamp issued; the caller replaces it
-- by the new one. A last stamp more than a minute ahead comes from a clock that was wrong, so it is ignored.
local WAITS, WORKS = 0, 1
local MINUTE = 60 * 1000000

local function stamp_after(last, what)
    local now = now_us()
    last = tonumber(last or '0')
    if last > now + MINUTE then
        last = 0
    end
    local stamp = math.max(now, last + 1)
    if stamp % 2 ~= what then
        stamp = stamp + 1
    end
    return text(stamp)
end

-- Count the nodes with a heartbeat within `ttl`. A heartbeat from the future does not count: the clock went back.
local function live_nodes(nodes, ttl)
    local now = now_us()
    return redis.call('ZCOUNT', nodes, text(now - ttl), text(now + ttl))
end

local function sign_of_life(nodes, node)
    redis.call('ZADD', nodes, text(now_us()), node)
end

-- Return the tokens of the members ARGV[first..] with this suffix.
local function tokens_of(suffix, first)
    local tokens, tail = {}, ':' .. suffix
    for i = first, #ARGV do
        tokens[i - first + 1] = ARGV[i] .. tail
    end
    return tokens
end

-- Return those members of ARGV[first..] whose token with this suffix is live, and their tokens. Mostly all are live.
local function live_members(processing, suffix, first)
    local tokens = tokens_of(suffix, first)
    local flags, live = redis.call('SMISMEMBER', processing, unpack(tokens)), 0
    for i = 1, #flags do
        live = live + flags[i]
    end
    if live == #flags then
        return { unpack(ARGV, first) }, tokens
    end
    local members, some = {}, {}
    for i = 1, #flags do
        if flags[i] == 1 then
            members[#members + 1] = ARGV[i + first - 1]
            some[#some + 1] = tokens[i]
        end
    end
    return members, some
end

-- A silent node counts as dead only while heartbeats reach this server. `presence` stores since when heartbeats have
-- come without a gap, when the last heartbeat of any node came, and the run id of the server. A server that restarted
-- or took over from another server has another run id: its data may be older than what its clients remember.
local server = nil
local function this_server()
    if not server then
        local is_told, info = pcall(redis.call, 'INFO', 'server')
        server = is_told and string.match(info, 'run_id:(%w+)') or ''
    end
    return server
end

local function presence_of(presence, ttl)
    local since, heard, of_server = unpack(redis.call('HMGET', presence, 'since', 'heard', 'server'))
    since, heard = tonumber(since or nil), tonumber(heard or nil)
    local now = now_us()
    local is_unbroken = since and heard and since <= now and math.abs(now - heard) <= ttl / 2
        and of_server == this_server()
    return is_unbroken and since or nil
end

local function begin_presence(presence)
    local now = text(now_us())
    redis.call('HSET', presence, 'since', now, 'heard', now, 'server', this_server())
end

-- Whether a node or a run that has been silent for `ttl` is dead: heartbeats have come without a gap for longer than
-- `ttl`, so every live node has had time to send one.
local function is_settled(presence, ttl)
    local since = presence_of(presence, ttl)
    return since ~= nil and now_us() - since > ttl
end
