-- Reads the state of the queue at this moment. Cheap: its cost does not grow with the backlog.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] nodes  KEYS[5] pause
-- KEYS[6] presence  hash  since when heartbeats have come without a gap (us), the last one, the server
-- ARGV[1] ttl  node ttl, us
-- returns {now (us), backlog, in flight, members that failed before, pause left (ms), {live nodes}, since when
--         heartbeats have come without a gap (us), 1 if a silent node is dead}
--
-- include _nodes
local queue, processing, attempts, nodes, pause = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local presence = KEYS[6]
local now, ttl = now_us(), tonumber(ARGV[1])
return {
    text(now),
    redis.call('SCARD', queue),
    redis.call('SCARD', processing),
    redis.call('HLEN', attempts),
    math.max(redis.call('PTTL', pause), 0),
    redis.call('ZRANGEBYSCORE', nodes, text(now - ttl), text(now + ttl)),
    text(presence_of(presence, ttl) or now),
    is_settled(presence, ttl) and 1 or 0,
}
