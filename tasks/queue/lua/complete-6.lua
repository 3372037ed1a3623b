-- Completes a claim: removes its tokens from processing, and resets the attempts of its members.
--
-- KEYS[1] queue       set     ID:VENDOR
-- KEYS[2] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] attempts    hash    ID:VENDOR -> how often it failed
-- KEYS[4] nodes       zset    NODE by its last heartbeat (us)
-- KEYS[5] wake        string  see wake-3.lua
-- KEYS[6] pause       string  exists while the database is away
-- ARGV[1] suffix of the claim, NODE:TIMESTAMP
-- ARGV[2] share: how many members a node may have in flight; 0 if this is not the last page of the claim
-- ARGV[3] node ttl, us
-- ARGV[4] ms after which a tick that was sent counts as lost
-- ARGV[5..] members
-- returns {completed, woken}; a token that is no longer live changes nothing and is not counted
--
-- If members wait and at least half of the room is free, the process that completes sends the tick. So a backlog
-- drains at the speed of the workers, not of the schedule.
local queue, processing, attempts, nodes, wake, pause = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local suffix, share, ttl, wake_ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local completed
if redis.call('EXISTS', attempts) == 0 then
    completed = redis.call('SREM', processing, unpack(tokens_of(suffix, 5)))
else
    -- a member whose token is gone was recovered and may have failed since; its attempts must stay
    local members, live = live_members(processing, suffix, 5)
    completed = #members
    if completed > 0 then
        redis.call('SREM', processing, unpack(live))
        redis.call('HDEL', attempts, unpack(members))
    end
end

local woken = 0
if share > 0 and redis.call('EXISTS', queue) == 1 and redis.call('EXISTS', pause) == 0 then
    if redis.call('SCARD', processing) * 2 <= math.max(live_nodes(nodes, ttl), 1) * share
        and redis.call('SET', wake, '1', 'NX', 'PX', wake_ttl) then
        woken = 1
    end
end
return { completed, woken }
