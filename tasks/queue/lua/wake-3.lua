-- Asks for a tick if one is needed: members wait, none is on its way, and the database is not away.
--
-- KEYS[1] queue  set     ID:VENDOR
-- KEYS[2] wake   string  '1' a tick is on its way or was there a moment ago, '2' and somebody marked since
-- KEYS[3] pause  string  exists while the database is away
-- ARGV[1] ms after which a tick on its way is taken for lost
-- ARGV[2] 1 to ask even if one seems to be on its way: it may have been lost with its worker
-- returns 1 if the caller must send a tick
--
-- Every tick that finds little to do is followed by a look, a moment later: marks of that moment share the next
-- tick. Nothing marked meanwhile: then the next mark sends its tick itself.
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
