-- Reads the state of the queue. Cheap: its cost does not grow with the backlog, and it changes nothing.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] nodes  KEYS[5] pause  KEYS[6] waiting  KEYS[7] ticked
-- KEYS[8] stamp  KEYS[9] left  KEYS[10] dead  KEYS[11] presence
-- returns {{now (us), backlog, in flight, members that failed before, pause left (ms), since when the oldest noted
--         member waits (us; 0 if none is noted), last tick (us), last stamp (us), last heartbeat (us), since when
--         heartbeats have come without a gap (us), 1 if a silent node is dead},
--         {live node, its last heartbeat, ...}, {dead node, its last heartbeat, ...}}
--
-- include _nodes
-- from tasks/pacing.py: MOST_DEAD
local queue, processing, attempts, nodes, pause = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local waiting, ticked, stamp, left, dead, presence = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
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

-- The next heartbeat of another node buries those that are silent now.
local gone = redis.call('ZREVRANGE', dead, 0, MOST_DEAD - 1, 'WITHSCORES')
local are_dead = is_settled(presence)
if are_dead then
    local oldest_sign = text(now - ttl)
    local silent = redis.call('ZRANGEBYSCORE', nodes, '-inf', '(' .. oldest_sign, 'WITHSCORES', 'LIMIT', 0, MOST_DEAD)
    for i = 1, #silent, 2 do
        if not redis.call('ZSCORE', left, silent[i]) then
            gone[#gone + 1], gone[#gone + 2] = silent[i], silent[i + 1]
        end
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
        are_dead and 1 or 0,
    },
    redis.call('ZRANGEBYSCORE', nodes, text(now - ttl), text(now + ttl), 'WITHSCORES'),
    gone,
}
