-- Marks executions: puts members on the queue. Idempotent.
--
-- KEYS[1] queue  set     ID:VENDOR
-- KEYS[2] wake   string  see wake-3.lua
-- KEYS[3] marks  hash    ID:VENDOR -> how often it was marked while it waited
-- KEYS[4] processing  set  ID:VENDOR:NODE:TIMESTAMP
-- ARGV[1]        ms after which a tick that was sent counts as lost
-- ARGV[2]        up to this backlog every new member wakes a tick; above it a new member wakes one only if nothing
--                is in flight: otherwise the workers are busy, and they wake the next tick when they complete
-- ARGV[3..]      members
-- returns {added, woken}; woken is 1 if the caller must send a tick
--
-- A new member wakes a tick even if the queue is not empty: members on a short queue may be resting (claim-10.lua),
-- and new members must not wait for them. Above the small backlog with nothing in flight, the waiting members may have
-- been released because their rows were locked, and a release wakes no tick. A member that is marked often while it
-- waits is hot. Its marks are counted only where that is cheap: one mark of one execution on a short queue.
local queue, wake, marks, processing = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake_ttl, small = ARGV[1], tonumber(ARGV[2])

local added, woken = redis.call('SADD', queue, unpack(ARGV, 3)), 0
if added == 0 and #ARGV == 3 and redis.call('SCARD', queue) <= small then
    -- claims from a long queue do not clear their counters, so the hash is deleted above 1,000 entries
    if redis.call('HINCRBY', marks, ARGV[3], 1) == 1 and redis.call('HLEN', marks) > 1000 then
        redis.call('DEL', marks)
    end
    redis.call('PEXPIRE', marks, 10000)
elseif added > 0
    and (redis.call('SCARD', queue) - added <= small or redis.call('EXISTS', processing) == 0) then
    if redis.call('SET', wake, '1', 'NX', 'PX', wake_ttl) then
        woken = 1
    else
        redis.call('SET', wake, '2', 'XX', 'KEEPTTL')
    end
end
return { added, woken }
