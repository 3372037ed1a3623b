-- Marks executions: puts members on the queue. Doing it twice is doing it once.
--
-- KEYS[1] queue  set     ID:VENDOR
-- KEYS[2] wake   string  see wake-3.lua
-- KEYS[3] marks  hash    ID:VENDOR -> how often it was marked while it waited
-- KEYS[4] processing  set  ID:VENDOR:NODE:TIMESTAMP
-- ARGV[1]        ms after which a tick on its way is taken for lost
-- ARGV[2]        up to this backlog whatever is new wakes a tick; beyond it the workers are awake, if anything
--                is in flight: those that wait may have come back from locked rows, and wake nobody
-- ARGV[3..]      members
-- returns {added, woken}; woken is 1 if the caller must send a tick
--
-- Not only the first on an empty queue: those that wait there may be resting (claim-10.lua), and whoever comes
-- after them must not wait with them. Who is marked again and again while he waits is hot; that is counted
-- where it is cheap, for one mark of one execution on a short queue.
local queue, wake, marks, processing = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake_ttl, small = ARGV[1], tonumber(ARGV[2])

local added, woken = redis.call('SADD', queue, unpack(ARGV, 3)), 0
if added == 0 and #ARGV == 3 and redis.call('SCARD', queue) <= small then
    -- who is claimed from a long queue leaves his count behind: no more than a thousand do
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
