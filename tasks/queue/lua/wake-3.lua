-- Asks for a tick if one is needed: members wait, no tick was sent, and the database is not away.
--
-- KEYS[1] queue  set     ID:VENDOR
-- KEYS[2] wake   string  '1' a tick was sent or ran a moment ago, '2' the same and a member was marked since
-- KEYS[3] pause  string  exists while the database is away
-- ARGV[1] ms after which a tick that was sent counts as lost
-- ARGV[2] 1 to ask even if a tick was sent: it may have been lost with its worker
-- returns 1 if the caller must send a tick
--
-- After every tick that finds a short queue its process calls this script a moment later, so the marks of that moment
-- share the next tick. If nothing was marked meanwhile, the key is deleted, and the next mark sends its own tick.
local queue, wake, pause = KEYS[1], KEYS[2], KEYS[3]
local wake_ttl, anyway = ARGV[1], ARGV[2] == '1'

if not anyway and redis.call('GET', wake) == '1' then
    redis.call('DEL', wake)
    return 0
end
if redis.call('EXISTS', queue) == 0 or redis.call('EXISTS', pause) == 1 then
    return 0
end
redis.call('SET', wake, '1', 'PX', wake_ttl)
return 1
