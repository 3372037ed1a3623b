-- Records that a node stops by itself, so that its silence is no death.
--
-- KEYS[1] left  zset  NODE by when it stopped (us); the latest are kept, because a claim of such a node may still wait
--               for the worker that has its message
-- ARGV[1] node  the node that stops
-- returns 1
--
-- include _clock
-- from tasks/pacing.py: MOST_LEFT
local left = KEYS[1]
local node = ARGV[1]

redis.call('ZADD', left, text(now_us()), node)
redis.call('ZREMRANGEBYRANK', left, 0, -MOST_LEFT - 1)
return 1
