-- Announces an instance of the hash design, forgets the silent ones, and tells who is there.
--
-- KEYS[1] instances  zset  ID:NODE by its last sign of life (us)
-- ARGV[1] ID         its number; '' to look only
-- ARGV[2] NODE       the worker that has it
-- ARGV[3] ttl        us until a silent one is forgotten
-- ARGV[4] yields     '1' to stay away while another live node has that ID
-- returns ID:NODE of each live one, itself included if it was announced
--
-- include _clock
local instances = KEYS[1]
local id, node, ttl, yields = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'

local now = now_us()
redis.call('ZREMRANGEBYSCORE', instances, '-inf', '(' .. text(now - ttl))
-- a sign from the future is none: the clock went back
redis.call('ZREMRANGEBYSCORE', instances, '(' .. text(now + ttl), '+inf')

local own = id .. ':' .. node
local taken = false
if yields then
    for _, other in ipairs(redis.call('ZRANGE', instances, 0, -1)) do
        taken = taken or (other ~= own and string.sub(other, 1, #id + 1) == id .. ':')
    end
end
if id ~= '' and not taken then
    redis.call('ZADD', instances, text(now), own)
    -- nothing is left of a strategy that is used no more
    redis.call('PEXPIRE', instances, text(math.ceil(ttl / 1000)))
end
return redis.call('ZRANGE', instances, 0, -1)
