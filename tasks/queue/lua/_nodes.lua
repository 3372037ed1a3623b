-- Heartbeats of nodes, and the rule that tells whether a silent node is dead.
-- from tasks/conf/pacing.py: NODE_TTL_SECONDS

local ttl = NODE_TTL_SECONDS * 1000000

local function heartbeat(nodes, node)
    redis.call('ZADD', nodes, text(now_us()), node)
end

-- Count the nodes with a heartbeat within `ttl`. A heartbeat from the future does not count: the clock went back.
local function live_nodes(nodes)
    local now = now_us()
    return redis.call('ZCOUNT', nodes, text(now - ttl), text(now + ttl))
end

-- A silent node counts as dead only while heartbeats reach this server. `presence` stores since when heartbeats have
-- come without a gap, when the last heartbeat of any node came, and the run id of the server. A server that restarted
-- or took over from another server has another run id: its data may be older than what its clients remember.
local server = nil
local function this_server()
    if not server then
        local is_told, info = pcall(redis.call, 'INFO', 'server')
        server = is_told and string.match(info, 'run_id:(%w+)') or ''
    end
    return server
end

local function presence_of(presence)
    local since, heard, of_server = unpack(redis.call('HMGET', presence, 'since', 'heard', 'server'))
    since, heard = number(since), number(heard)
    local now = now_us()
    local is_unbroken = since > 0 and since <= now and math.abs(now - heard) <= ttl / 2
        and of_server == this_server()
    return is_unbroken and since or nil
end

-- Whether a node or a run that has been silent for `ttl` is dead: heartbeats have come without a gap for longer than
-- `ttl`, so every live node has had time to send one.
local function is_settled(presence)
    local since = presence_of(presence)
    return since ~= nil and now_us() - since > ttl
end
