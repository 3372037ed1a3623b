-- A sign of life of one node. Nodes that gave none for their ttl are forgotten: to be absent is to be dead.
-- A sign from the future comes from a clock that has gone back since, and is forgotten as well.
--
-- KEYS[1] nodes  zset  NODE by its last sign of life (us)
-- ARGV[1] node
-- ARGV[2] node ttl, us
-- returns the number of live nodes
local nodes = KEYS[1]
local node, ttl = ARGV[1], tonumber(ARGV[2])

sign_of_life(nodes, node)
local now = now_us()
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', '(' .. text(now - ttl))
redis.call('ZREMRANGEBYSCORE', nodes, '(' .. text(now + ttl), '+inf')
return redis.call('ZCARD', nodes)
