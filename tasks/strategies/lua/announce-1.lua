-- Announces an instance of the hash design, removes silent instances, and returns the live ones.
--
-- KEYS[1] instances  zset  ID:NODE by its last heartbeat (us)
-- ARGV[1] id       its number; '' to announce nothing
-- ARGV[2] node     the worker that has it
-- ARGV[3] ttl      us until a silent instance is removed
-- ARGV[4] if_free  '1' to announce nothing while another live node has that ID
-- returns ID:NODE of each live instance, itself included if it was announced
--
-- include _clock
local instances = KEYS[1]
local id, node, ttl, if_free = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'

local now = now_us()
redis.call('ZREMRANGEBYSCORE', instances, '-inf', '(' .. text(now - ttl))
-- a heartbeat from the future does not count, because the clock went back
redis.call('ZREMRANGEBYSCORE', instances, '(' .. text(now + ttl), '+inf')

local own = id .. ':' .. node
local taken = false
if if_free then
    for _, other in ipairs(redis.call('ZRANGE', instances, 0, -1)) do
        taken = taken or (other ~= own and string.sub(other, 1, #id + 1) == id .. ':')
    end
end
if id ~= '' and not taken then
    redis.call('ZADD', instances, text(now), own)
    -- the key expires, so that nothing is left when the strategy is no longer used
    redis.call('PEXPIRE', instances, text(math.ceil(ttl / 1000)))
end
return redis.call('ZRANGE', instances, 0, -1)
