-- Put before every script: Redis's own clock in microseconds, stamps, and which tokens are live.

-- Lua would write a large number as 1.7e+15.
local function text(number)
    return string.format('%.0f', number)
end

local function now_us()
    local time = redis.call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- A stamp is the time, and is never given twice, even if the clock stands still or goes back a little; so
-- two claims never share a token. Its last bit tells what the holder does: a claim that WAITS for a worker
-- has an even stamp, one that a process WORKS on an odd one. Only a claim that was worked on counts as an
-- attempt when its node dies. `wanted` is the stamp of an earlier page of the same claim, or '0' for a new
-- one. A last stamp from far in the future is the mark of a clock that has been put right since: forget it.
local WAITS, WORKS = 0, 1
local MINUTE = 60 * 1000000

local function next_stamp(stamp_key, wanted, what)
    if wanted ~= '0' then
        return wanted
    end
    local now = now_us()
    local last = tonumber(redis.call('GET', stamp_key) or '0')
    if last > now + MINUTE then
        last = 0
    end
    local stamp = math.max(now, last + 1)
    if stamp % 2 ~= what then
        stamp = stamp + 1
    end
    redis.call('SET', stamp_key, text(stamp))
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

-- Of the members ARGV[first..], those whose token with this suffix is live, and these tokens.
local function live_members(processing, suffix, first)
    local tokens = {}
    for i = first, #ARGV do
        tokens[i - first + 1] = ARGV[i] .. ':' .. suffix
    end
    local members, live = {}, {}
    for i, is_live in ipairs(redis.call('SMISMEMBER', processing, unpack(tokens))) do
        if is_live == 1 then
            members[#members + 1] = ARGV[i + first - 1]
            live[#live + 1] = tokens[i]
        end
    end
    return members, live
end
