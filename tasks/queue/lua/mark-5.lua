-- Marks executions: puts members on the queue. Idempotent.
--
-- KEYS[1] queue  KEYS[2] wake  KEYS[3] marks  KEYS[4] processing  KEYS[5] waiting
-- ARGV[1..] members
-- returns 1 if the caller must send a tick
--
-- Up to the small backlog every new member wakes a tick, because members on a short queue may be resting (claim-11.lua).
-- Above it a new member wakes one only if nothing is in flight: the waiting members may have been released because their
-- rows were locked, and a release wakes no tick. Otherwise the workers are busy, and wake the next tick when they complete.
-- A member that is marked often while it waits is hot. Its marks are counted only where that is cheap: one mark of one
-- execution on a short queue.
--
-- from tasks/conf/pacing.py: SMALL, MARKS_TTL_MS, MOST_COUNTERS
local queue, wake, marks, processing, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local added = redis.call('SADD', queue, unpack(ARGV))
if added > 0 then
    note_waiting(waiting, ARGV, added == #ARGV)
end
if added == 0 and #ARGV == 1 and redis.call('SCARD', queue) <= SMALL then
    -- claims from a long queue do not clear their counters, so the hash is deleted when it grows too large
    local counted = number(redis.call('HGET', marks, ARGV[1])) + 1
    redis.call('HSET', marks, ARGV[1], text(counted))
    if counted == 1 and redis.call('HLEN', marks) > MOST_COUNTERS then
        redis.call('DEL', marks)
    end
    redis.call('PEXPIRE', marks, MARKS_TTL_MS)
elseif added > 0
    and (redis.call('SCARD', queue) - added <= SMALL or redis.call('EXISTS', processing) == 0) then
    return tick_marked(wake)
end
return 0
