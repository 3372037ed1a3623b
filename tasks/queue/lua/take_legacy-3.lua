-- Takes some of Harbor's marks onto the queue, if it is time to look: a page of keys, and a page of the set.
--
-- KEYS[1] queue    set   ID:VENDOR
-- KEYS[2] waiting  zset  ID:VENDOR by when it was put on the queue (us)
-- KEYS[3] legacy   hash  cursor, set_cursor: where the last look stopped; paid: until when no look is due (us)
-- ARGV[1] match    the pattern of Harbor's keys, for SCAN
-- ARGV[2] set      Harbor's set; empty if that is the queue itself
-- ARGV[3] count    keys that are looked at, more or less
-- ARGV[4] rate     keys a second, of all processes together
-- ARGV[5..] the forms of a key, as patterns with its id and its vendor
-- returns {members taken, how long until the next look is due (us); 0 if it is due at once}
--
-- A look costs the time that its keys take at this rate, and no look begins before the one before is paid. So all
-- processes together keep to the rate, however many ticks come. After a pause, a look pays for the last LOOKS_BEHIND_US
-- only. When the scan has come round, the next round begins ROUND_US later, because a small server would be scanned
-- again and again. The cursor is here, so each look goes on where the last one stopped, in whatever process.
--
-- include _clock
-- include _legacy
-- from tasks/pacing.py: LOOKS_BEHIND_US, ROUND_US, WRONG_CLOCK_US
local queue, waiting, legacy = KEYS[1], KEYS[2], KEYS[3]
local match, set, count, rate = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local readers = { unpack(ARGV, 5) }

local function cursor_of(known)
    return string.match(known or '', '^%d+$') and #known < 20 and known or '0'
end

local now = now_us()
local cursor, set_cursor, paid = unpack(redis.call('HMGET', legacy, 'cursor', 'set_cursor', 'paid'))
paid = number(paid)
if paid > now + WRONG_CLOCK_US then
    paid = now
end
if paid > now then
    return { 0, math.ceil(paid - now) }
end
paid = math.max(paid, now - LOOKS_BEHIND_US) + count * 1000000 / rate

local taken, of_set
cursor, taken = take_keys(queue, waiting, cursor_of(cursor), match, count, readers)
if cursor == '0' then
    paid = math.max(paid, now + ROUND_US)
end
if set ~= '' then
    set_cursor, of_set = take_set(queue, waiting, set, cursor_of(set_cursor), count)
    taken = taken + of_set
end
redis.call('HSET', legacy, 'cursor', cursor, 'set_cursor', set_cursor or '0', 'paid', text(paid))
return { taken, math.max(0, math.ceil(paid - now)) }
