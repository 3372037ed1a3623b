-- Which of these members are on the queue or in flight: known, and not lost.
--
-- KEYS[1] queue       set   ID:VENDOR
-- KEYS[2] processing  set   ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] claims      hash  ID:VENDOR -> NODE:TIMESTAMP
-- ARGV    members
-- returns one number a member: 1 if it is known
local queue, processing, claims = KEYS[1], KEYS[2], KEYS[3]

local known = redis.call('SMISMEMBER', queue, unpack(ARGV))
local suffixes = redis.call('HMGET', claims, unpack(ARGV))
for i, member in ipairs(ARGV) do
    local suffix = suffixes[i]
    if suffix and redis.call('SISMEMBER', processing, member .. ':' .. suffix) == 1 then
        known[i] = 1
    end
end
return known
