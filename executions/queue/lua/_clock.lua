-- Shared by every script that needs the time: Redis's own clock, in microseconds.
--
-- `next_stamp` never gives the same number twice, even if the clock stands still or goes back, so two
-- claims never share a token. `text` writes a number in full (Lua would write 1.7e+15).
local function now_us()
    local time = redis.call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function text(number)
    return string.format('%.0f', number)
end

-- `wanted` is the stamp of an earlier page of the same claim, or '0' for a new one.
local function next_stamp(stamp_key, wanted)
    if wanted ~= '0' then
        return wanted
    end
    local stamp = math.max(now_us(), tonumber(redis.call('GET', stamp_key) or '0') + 1)
    redis.call('SET', stamp_key, text(stamp))
    return text(stamp)
end
