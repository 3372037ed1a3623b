-- Completes a claim: removes its tokens from processing, and resets the attempts of its members.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] nodes  KEYS[5] wake  KEYS[6] pause
-- ARGV[1] suffix   of the claim, NODE:TIMESTAMP
-- ARGV[2] share    members a node may have in flight
-- ARGV[3] is_last  1 if this is the last page of the claim, so that a tick may be due
-- ARGV[4..] members
-- returns {completed, wake}; a token that is no longer live changes nothing and is not counted; wake is 1 if the caller
--         must send a tick
--
-- If members wait and enough room is free, the process that completes sends the tick. So a backlog drains at the speed
-- of the workers, not of the schedule.
--
-- from tasks/conf/pacing.py: ENOUGH_ROOM
local queue, processing, attempts, nodes, wake, pause = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local suffix, share, is_last = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local members = { unpack(ARGV, 4) }

local completed
if redis.call('EXISTS', attempts) == 0 then
    completed = redis.call('SREM', processing, unpack(tokens_of(members, suffix)))
else
    -- a member whose token is gone was recovered and may have failed since; its attempts must stay
    local live, tokens = live_of(processing, members, suffix)
    completed = #live
    if completed > 0 then
        redis.call('SREM', processing, unpack(tokens))
        redis.call('HDEL', attempts, unpack(live))
    end
    -- what is left is of members whose marks Redis has lost, or rubbish
    if redis.call('EXISTS', queue, processing) == 0 then
        redis.call('DEL', attempts)
    end
end

local must_wake = 0
if is_last and redis.call('EXISTS', queue) == 1 and pause_left(pause) == 0 then
    local most = math.max(live_nodes(nodes), 1) * share
    if redis.call('SCARD', processing) <= most * (1 - ENOUGH_ROOM) then
        must_wake = tick_if_none(wake)
    end
end
return { completed, must_wake }
