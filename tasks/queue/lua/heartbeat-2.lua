-- Records the heartbeat of one node, and removes the nodes that are dead. Each dead node is removed by exactly one
-- heartbeat of another node, which gets their number; its process then asks for recovery at once.
--
-- KEYS[1] nodes     zset  NODE by its last heartbeat (us)
-- KEYS[2] presence  hash  since when heartbeats have come without a gap (us), the last one, the server
-- ARGV[1] node  the node that is alive
-- ARGV[2] ttl   node ttl, us
-- returns {live nodes, nodes that this heartbeat found dead}
--
-- After a gap (Redis was away, or no worker ran) every node has a ttl to send a heartbeat before it counts as dead. A
-- heartbeat from the future comes from a clock that has gone back; that node is removed as well.
--
-- include _nodes
local nodes, presence = KEYS[1], KEYS[2]
local node, ttl = ARGV[1], tonumber(ARGV[2])

heartbeat(nodes, node)
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
