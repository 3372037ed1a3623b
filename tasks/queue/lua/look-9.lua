-- Reads the state of the queue. Cheap: its cost does not grow with the backlog, and it changes nothing.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] nodes  KEYS[5] pause  KEYS[6] waiting  KEYS[7] ticked
-- KEYS[8] dead  KEYS[9] presence
-- returns {{now (us), backlog, in flight, members that failed before, pause left (ms), since when the oldest noted
--         member waits (us; 0 if none is noted), last tick (us), last heartbeat (us), since when heartbeats have come
--         without a gap (us), 1 if a silent node is dead},
--         {live node, its last heartbeat, ...}, {dead node, its last heartbeat, ...}}; the next heartbeat of another node
--         makes a silent node one of the dead ones
local queue, processing, attempts, nodes, pause = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local waiting, ticked, dead, presence = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now = now_us()

-- An entry outlives its member only if a program took the member off the queue without these scripts.
local since = '0'
local oldest = redis.call('ZRANGE', waiting, 0, 9, 'WITHSCORES')
for i = 1, #oldest, 2 do
    if redis.call('SISMEMBER', queue, oldest[i]) == 1 then
        since = oldest[i + 1]
        break
    end
end
local last_sign = redis.call('HGET', presence, 'heard')
return {
    {
        text(now),
        redis.call('SCARD', queue),
        redis.call('SCARD', processing),
        redis.call('HLEN', attempts),
        pause_left(pause),
        text(number(since)),
        text(number(redis.call('GET', ticked))),
        text(number(last_sign)),
        text(presence_of(presence) or now),
        is_settled(presence) and 1 or 0,
    },
    redis.call('ZRANGEBYSCORE', nodes, text(now - ttl), text(now + ttl), 'WITHSCORES'),
    redis.call('ZREVRANGE', dead, 0, -1, 'WITHSCORES'),
}
