-- Asks for a tick if members wait, nobody has asked yet, and the database is not away.
--
-- KEYS[1] queue  set     ID:VENDOR
-- KEYS[2] wake   string  exists while a tick is on its way
-- KEYS[3] pause  string  exists while the database is away
-- ARGV[1] ms after which a tick on its way is taken for lost
-- returns 1 if the caller must send a tick
local queue, wake, pause = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', queue) == 0 or redis.call('EXISTS', pause) == 1 then
    return 0
end
return redis.call('SET', wake, '1', 'NX', 'PX', ARGV[1]) and 1 or 0
