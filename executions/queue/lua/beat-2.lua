-- A sign of life of one node. Nodes that gave none for their ttl are forgotten: to be absent is to be dead.
-- A sign from the future comes from a clock that has gone back since, and is forgotten as well. Each is forgotten by
-- one sign of life of another, which is told: its process asks for recovery at once.
--
-- KEYS[1] nodes  zset    NODE by its last sign of life (us)
-- KEYS[2] since  string  since when this Redis remembers (us): it was empty then
-- ARGV[1] node
-- ARGV[2] node ttl, us
-- returns {live nodes, nodes that were found silent by this sign, since (us)}
local nodes, since_key = KEYS[1], KEYS[2]
local node, ttl = ARGV[1], tonumber(ARGV[2])

sign_of_life(nodes, node)
local now = now_us()
local silent = redis.call('ZREMRANGEBYSCORE', nodes, '-inf', '(' .. text(now - ttl))
silent = silent + redis.call('ZREMRANGEBYSCORE', nodes, '(' .. text(now + ttl), '+inf')
return { redis.call('ZCARD', nodes), silent, text(remembers_since(since_key)) }
