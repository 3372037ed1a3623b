-- Marks executions: puts members on the queue. Doing it twice is doing it once.
--
-- KEYS[1] queue  set     ID:VENDOR
-- KEYS[2] wake   string  exists while a tick is on its way
-- ARGV[1]        ms after which a tick on its way is taken for lost
-- ARGV[2..]      members
-- returns {added, woken}; woken is 1 if the caller must send a tick
local queue, wake = KEYS[1], KEYS[2]
local wake_ttl = ARGV[1]

local was_empty = redis.call('EXISTS', queue) == 0
local added = redis.call('SADD', queue, unpack(ARGV, 2))
local woken = 0
if was_empty and redis.call('SET', wake, '1', 'NX', 'PX', wake_ttl) then
    woken = 1
end
return { added, woken }
