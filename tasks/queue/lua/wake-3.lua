-- Asks for a tick if one is needed: members wait, no tick was sent, and the database is not away.
--
-- KEYS[1] queue  set     ID:VENDOR
-- KEYS[2] wake   string  TICK_SENT: a tick was sent, or ran a moment ago; MARKED_SINCE: the same, and a member was
--                        marked since
-- KEYS[3] pause  string  exists while the database is away
-- ARGV[1] ignore_pending_wake  1 to ask even if a tick was sent: it may have been lost with its worker
-- ARGV[2] ignore_empty_queue   1 to ask even if no member waits: marks may wait that only a tick takes onto the queue
-- returns 1 if the caller must send a tick
--
-- After every tick that finds a short queue its process calls this script a moment later, so the marks of that moment
-- share the next tick. If nothing was marked meanwhile, the key is deleted, and the next mark sends its own tick.
--
-- from tasks/pacing.py: TICK_SENT, WAKE_TTL_MS
local queue, wake, pause = KEYS[1], KEYS[2], KEYS[3]
local ignore_pending_wake, ignore_empty_queue = ARGV[1] == '1', ARGV[2] == '1'

if not ignore_pending_wake and redis.call('GET', wake) == TICK_SENT then
    redis.call('DEL', wake)
    return 0
end
if redis.call('EXISTS', queue) == 0 and not ignore_empty_queue then
    return 0
end
if redis.call('EXISTS', pause) == 1 then
    return 0
end
redis.call('SET', wake, TICK_SENT, 'PX', WAKE_TTL_MS)
return 1
