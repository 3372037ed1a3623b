-- Completes a claim: its tokens leave processing, and what failed before is forgotten.
--
-- KEYS[1] queue       set     ID:VENDOR
-- KEYS[2] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] claims      hash    ID:VENDOR -> NODE:TIMESTAMP
-- KEYS[4] attempts    hash    ID:VENDOR -> how often it failed
-- KEYS[5] nodes       zset    NODE by its last sign of life (us)
-- KEYS[6] wake        string  exists while a tick is on its way
-- KEYS[7] pause       string  exists while the database is away
-- ARGV[1] suffix of the claim, NODE:TIMESTAMP
-- ARGV[2] share: how many a node may have in flight
-- ARGV[3] node ttl, us
-- ARGV[4] ms after which a tick on its way is taken for lost
-- ARGV[5..] members
-- returns {completed, woken}; a token that is no longer live changes nothing and is not counted
--
-- While members wait and the workers have room for as much again, the one who completes sends the tick:
-- so a backlog drains at the speed of the workers, not of the schedule.
local queue, processing, claims, attempts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local nodes, wake, pause = KEYS[5], KEYS[6], KEYS[7]
local suffix, share, ttl, wake_ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local tokens = {}
for i = 5, #ARGV do
    tokens[i - 4] = ARGV[i] .. ':' .. suffix
end
local completed = redis.call('SREM', processing, unpack(tokens))
local members = { unpack(ARGV, 5) }
if completed < #members then
    -- some were not live: only what the index still calls ours was
    local suffixes = redis.call('HMGET', claims, unpack(members))
    members = {}
    for i, owner in ipairs(suffixes) do
        if owner == suffix then
            members[#members + 1] = ARGV[i + 4]
        end
    end
end
if #members > 0 then
    redis.call('HDEL', claims, unpack(members))
    if redis.call('EXISTS', attempts) == 1 then
        redis.call('HDEL', attempts, unpack(members))
    end
end

local woken = 0
if redis.call('EXISTS', queue) == 1 and redis.call('EXISTS', pause) == 0 then
    if redis.call('SCARD', processing) * 2 <= math.max(live_nodes(nodes, ttl), 1) * share
        and redis.call('SET', wake, '1', 'NX', 'PX', wake_ttl) then
        woken = 1
    end
end
return { completed, woken }
