-- Put before every script: Redis's own clock in microseconds, stamps, which tokens are live, and whether silence means
-- death.

-- Lua would write a large number as 1.7e+15.
local function text(number)
    return string.format('%.0f', number)
end

-- Asked once a script: every command a script calls is one more for Redis to do.
local clock = nil
local function now_us()
    if not clock then
        local time = redis.call('TIME')
        clock = tonumber(time[1]) * 1000000 + tonumber(time[2])
    end
    return clock
end

-- A stamp is the time, and is never given twice, even if the clock stands still or goes back a little; so
-- two claims never share a token. Its last bit tells what the holder does: a claim that WAITS for a worker
-- has an even stamp, one that a process WORKS on an odd one. Only a claim that was worked on counts as an
-- attempt when its node dies. `last` is the last stamp given, which the caller replaces by this one. A last
-- stamp from far in the future is the mark of a clock that has been put right since: forget it.
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

-- How many nodes gave a sign of life within `ttl`. A sign from the future is none: the clock went back.
local function live_nodes(nodes, ttl)
    local now = now_us()
    return redis.call('ZCOUNT', nodes, text(now - ttl), text(now + ttl))
end

local function sign_of_life(nodes, node)
    redis.call('ZADD', nodes, text(now_us()), node)
end

-- The tokens of the members ARGV[first..] with this suffix.
local function tokens_of(suffix, first)
    local tokens, tail = {}, ':' .. suffix
    for i = first, #ARGV do
        tokens[i - first + 1] = ARGV[i] .. tail
    end
    return tokens
end

-- Of the members ARGV[first..], those whose token with this suffix is live, and these tokens. Mostly all are.
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

-- Silence means death only while signs of life get through. `presence` notes since when they have come to this
-- server without a gap, and when the last heartbeat of any node came. A server that was restarted, or that took over
-- from another, has another run id: what it holds may be older than what its clients remember.
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

-- Whether a node or a run that has been silent for `ttl` is dead: each that is alive has had the time to be heard.
local function is_settled(presence, ttl)
    local since = presence_of(presence, ttl)
    return since ~= nil and now_us() - since > ttl
end
