-- Notes that a live worker takes from these queues of the broker, and forgets old ones.
--
-- KEYS[1] queues  zset  the name of a queue by the time when it was noted last (us)
-- ARGV[1..] names
-- returns how many names are known
--
-- include _clock
-- from tasks/pacing.py: FORGOTTEN_US, MOST_QUEUES
local queues = KEYS[1]

local now = now_us()
for _, name in ipairs(ARGV) do
    redis.call('ZADD', queues, text(now), name)
end
redis.call('ZREMRANGEBYSCORE', queues, '-inf', '(' .. text(now - FORGOTTEN_US))
redis.call('ZREMRANGEBYRANK', queues, 0, -1 - MOST_QUEUES)
return redis.call('ZCARD', queues)
