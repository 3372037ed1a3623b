-- A sign of life of one node. Nodes that gave none for their ttl are forgotten: to be absent is to be dead.
--
-- KEYS[1] nodes  zset  NODE by its last sign of life (us)
-- ARGV[1] node
-- ARGV[2] node ttl, us
-- returns the number of live nodes
local nodes = KEYS[1]
local node, ttl = ARGV[1], tonumber(ARGV[2])

local now = now_us()
redis.call('ZADD', nodes, text(now), node)
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', '(' .. text(now - ttl))
return redis.call('ZCARD', nodes)
