-- Gives a sign of life of one node, and forgets the nodes that are dead. Each dead node is found by one sign of life of
-- another, which is told: its process asks for recovery at once.
--
-- KEYS[1] nodes     zset  NODE by its last sign of life (us)
-- KEYS[2] presence  hash  since when signs of life have come without a gap (us), the last one, the server
-- ARGV[1] node
-- ARGV[2] node ttl, us
-- returns {live nodes, nodes that were found dead by this sign}
--
-- After a gap (Redis was away, or no worker ran) nodes have a ttl to be heard again before any is taken for dead. A
-- sign from the future comes from a clock that has gone back since, and is forgotten as well.
local nodes, presence = KEYS[1], KEYS[2]
local node, ttl = ARGV[1], tonumber(ARGV[2])

sign_of_life(nodes, node)
if not presence_of(presence, ttl) then
    begin_presence(presence)
end
local now, dead = now_us(), 0
redis.call('HSET', presence, 'heard', text(now))
if is_settled(presence, ttl) then
    dead = redis.call('ZREMRANGEBYSCORE', nodes, '-inf', '(' .. text(now - ttl))
    dead = dead + redis.call('ZREMRANGEBYSCORE', nodes, '(' .. text(now + ttl), '+inf')
end
return { live_nodes(nodes, ttl), dead }
