-- Records the heartbeat of one node, or that it stops, and removes the nodes that are dead. Each dead node is removed by
-- exactly one heartbeat of another node, which gets their number; its process then asks for recovery at once.
--
-- KEYS[1] nodes  KEYS[2] presence  KEYS[3] left  KEYS[4] dead
-- ARGV[1] node     the node that is alive
-- ARGV[2] is_last  1 if the node stops by itself, so that its silence is no death
-- returns how many nodes this heartbeat found dead
--
-- A silent node that said that it stops is not dead. If it were, a pool that ends each process after a task would recover
-- for ever, because each recovery ends a process. The latest such nodes are kept in `left`, because their claims may
-- still wait for the worker that has the message.
-- After a gap (Redis was down, or no worker ran) every node has a ttl to send a heartbeat before it counts as dead. A
-- heartbeat from the future comes from a clock that has gone back; that node is removed as well.
--
-- from tasks/conf/pacing.py: MOST_DEAD, MOST_LEFT
local nodes, presence, left, dead_nodes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local node, is_last = ARGV[1], ARGV[2] == '1'

if is_last then
    redis.call('ZADD', left, text(now_us()), node)
    redis.call('ZREMRANGEBYRANK', left, 0, -MOST_LEFT - 1)
    return 0
end

local function bury(from, to)
    local silent, dead = redis.call('ZRANGEBYSCORE', nodes, from, to, 'WITHSCORES'), 0
    if #silent == 0 then
        return 0
    end
    for i = 1, #silent, 2 do
        if not redis.call('ZSCORE', left, silent[i]) then
            redis.call('ZADD', dead_nodes, silent[i + 1], silent[i])
            dead = dead + 1
        end
    end
    redis.call('ZREMRANGEBYRANK', dead_nodes, 0, -MOST_DEAD - 1)
    redis.call('ZREMRANGEBYSCORE', nodes, from, to)
    return dead
end

heartbeat(nodes, node)
local now = now_us()
if not presence_of(presence) then
    redis.call('HSET', presence, 'since', text(now), 'server', this_server())
end
redis.call('HSET', presence, 'heard', text(now))
if not is_settled(presence) then
    return 0
end
return bury('-inf', '(' .. text(now - ttl)) + bury('(' .. text(now + ttl), '+inf')
