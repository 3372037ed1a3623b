-- Tells whether a pass of the search after the last death is due, and notes when the next one is. One process gets it.
--
-- KEYS[1] dead    zset  nodes that fell silent, by their last heartbeat (us)
-- KEYS[2] search  hash  `death`: the last heartbeat of the node of the search; `due`: when its next pass is, 0 if
--                       it is over; `pause`: the time after that pass (us)
-- ARGV[1] ttl      node ttl, us
-- ARGV[2] pause    from the first pass to the second, us. Each further one is twice as long
-- ARGV[3] longest  pause, us
-- ARGV[4] within   us after the node counted as dead. Later there is no pass
-- returns the last heartbeat of that node (us), 0 if no pass is due
--
-- A death while a search is under way does not begin another one: the pauses go on growing, so a worker that dies
-- again and again costs no more passes than one that dies once.
--
-- What if the process dies in its pass: the next one comes after the pause. What if Redis loses the key: the search
-- begins anew. What if the clock goes back: a moment that is too far ahead counts as due.
--
-- include _clock
local dead, search = KEYS[1], KEYS[2]
local ttl, first, longest, within = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local now = now_us()
local last = redis.call('ZRANGE', dead, text(now), 0, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
if #last == 0 or now > number(last[2]) + ttl + within then
    return 0
end
local death = number(last[2])
local known = redis.call('HMGET', search, 'death', 'pause', 'due')
local pause, due = number(known[2]), number(known[3])
if due == 0 then
    if number(known[1]) == death then
        return 0
    end
    pause, due = first, now
end
if now < due and due <= now + longest then
    return 0
end
redis.call('HSET', search, 'death', text(death), 'pause', text(math.min(2 * pause, longest)), 'due', text(now + pause))
return death
