-- The clock of Redis in microseconds.
-- from tasks/conf/pacing.py: DATABASE_PAUSE_SECONDS

-- Lua would write a large number as 1.7e+15.
local function text(number)
    return string.format('%.0f', number)
end

-- Return a text as a whole number from 0 to 2^53; 0 if it is no such number. So an entry that no release has written
-- stops no script.
local function number(content)
    local found = tonumber(content or nil)
    return found and found >= 0 and found <= 9007199254740992 and math.floor(found) or 0
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

-- Return for how many milliseconds no node claims, because the database is down. A longer time than a pause has comes
-- from a clock that has gone back, so it is ignored.
local function pause_left(pause)
    local left = redis.call('PTTL', pause)
    return left <= DATABASE_PAUSE_SECONDS * 1000 and math.max(left, 0) or 0
end
