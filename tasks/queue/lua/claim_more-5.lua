-- Claims the next page of members from a long queue, for a claim that claim-12.lua began.
--
-- KEYS[1] queue       set     ID:VENDOR
-- KEYS[2] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] attempts    hash    ID:VENDOR -> how often it failed
-- KEYS[4] cursor      string  where the last claim stopped scanning the queue
-- KEYS[5] waiting     zset    ID:VENDOR by when it was put on the queue (us)
-- ARGV[1] suffix  of the claim, NODE:TIMESTAMP
-- ARGV[2] most    most members of this page
-- ARGV[3] limit   most members that may be in flight, of all nodes
-- ARGV[4] cursor  where the page before stopped scanning
-- returns {cursor, room left, {members}, {failures}}; failures is empty if no member failed ever
--
-- Other nodes claim between two pages, so each page computes the room that is left.
--
-- include _claim
local queue, processing, attempts, cursor_key, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local suffix, most, limit, cursor = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local room = limit - redis.call('SCARD', processing)
if room <= 0 then
    return { cursor, 0, {}, {} }
end
local members
members, cursor = scan(queue, waiting, cursor, math.min(most, room))
redis.call('SET', cursor_key, cursor)
if #members == 0 then
    return { cursor, room, {}, {} }
end
return { cursor, room - #members, members, hold(processing, attempts, members, suffix) }
