-- What the queue looks like at this moment. Cheap: nothing here grows with the backlog.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] nodes  KEYS[5] pause
-- ARGV[1] node ttl, us
-- returns {now (us), backlog, in flight, members that failed before, pause left (ms), {live nodes}}
local queue, processing, attempts, nodes, pause = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, ttl = now_us(), tonumber(ARGV[1])
return {
    text(now),
    redis.call('SCARD', queue),
    redis.call('SCARD', processing),
    redis.call('HLEN', attempts),
    math.max(redis.call('PTTL', pause), 0),
    redis.call('ZRANGEBYSCORE', nodes, text(now - ttl), text(now + ttl)),
}
