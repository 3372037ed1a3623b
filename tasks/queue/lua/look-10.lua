-- Reads the state of the queue. Cheap: its cost does not grow with the backlog, and it changes nothing.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] nodes  KEYS[5] pause  KEYS[6] waiting  KEYS[7] ticked
-- KEYS[8] stamp  KEYS[9] dead  KEYS[10] presence
-- returns {{now (us), backlog, in flight, members that failed before, pause left (ms), since when the oldest noted
--         member waits (us; 0 if none is noted), last tick (us), last stamp (us), last heartbeat (us), since when
--         heartbeats have come without a gap (us), 1 if a silent node is dead},
--         {live node, its last heartbeat, ...}, {dead node, its last heartbeat, ...}}; the next heartbeat of another node
--         makes a silent node one of the dead ones
--
-- include _nodes
local queue, processing, attempts, nodes, pause = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local waiting, ticked, stamp, dead, presence = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
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
local last_tick, last_stamp = unpack(redis.call('MGET', ticked, stamp))
return {
    {
        text(now),
        redis.call('SCARD', queue),
        redis.call('SCARD', processing),
        redis.call('HLEN', attempts),
        math.max(redis.call('PTTL', pause), 0),
        text(number(since)),
        text(number(last_tick)),
        text(number(last_stamp)),
        text(number(last_sign)),
        text(presence_of(presence) or now),
        is_settled(presence) and 1 or 0,
    },
    redis.call('ZRANGEBYSCORE', nodes, text(now - ttl), text(now + ttl), 'WITHSCORES'),
    redis.call('ZREVRANGE', dead, 0, -1, 'WITHSCORES'),
}
