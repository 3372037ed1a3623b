-- Claims members: moves them from the queue to processing, as tokens of one node and one stamp.
--
-- KEYS[1] queue       set     ID:VENDOR
-- KEYS[2] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] claims      hash    ID:VENDOR -> NODE:TIMESTAMP, the index of processing by member
-- KEYS[4] attempts    hash    ID:VENDOR -> how often it failed
-- KEYS[5] nodes       zset    NODE by its last sign of life (us)
-- KEYS[6] wake        string  exists while a tick is on its way
-- KEYS[7] pause       string  exists while the database is away
-- KEYS[8] stamp       string  the last stamp given
-- ARGV[1] node
-- ARGV[2] how many at most
-- ARGV[3] share: how many a node may have in flight; all live nodes together are the limit
-- ARGV[4] node ttl, us
-- ARGV[5] stamp of the page before, if this is another page of one claim; else 0
-- returns {stamp, backlog before, in flight after, live nodes, {members}, {attempts}}
--
-- A member that is in flight already stays on the queue: one execution is in one claim at a time, and is
-- claimed again when that one is done. Processing is the authority; an index entry without its token
-- (somebody deleted the token by hand) holds nobody up.
local queue, processing, claims, attempts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local nodes, wake, pause, stamp_key = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local node, count, share, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- whoever marks after this line may send a tick again: this one may be past its last look
redis.call('DEL', wake)

sign_of_life(nodes, node)
local live = live_nodes(nodes, ttl)
local backlog = redis.call('SCARD', queue)
local in_flight = redis.call('SCARD', processing)
if in_flight == 0 then
    redis.call('DEL', claims)
end
local room = live * share - in_flight
local take = math.min(count, room)
if take <= 0 or backlog == 0 or redis.call('EXISTS', pause) == 1 then
    return { ARGV[5], backlog, in_flight, live, {}, {} }
end

local popped = redis.call('SPOP', queue, take)
local free, held = popped, {}
if in_flight > 0 then
    free = {}
    local suffixes = redis.call('HMGET', claims, unpack(popped))
    for i, member in ipairs(popped) do
        local suffix = suffixes[i]
        if suffix and redis.call('SISMEMBER', processing, member .. ':' .. suffix) == 1 then
            held[#held + 1] = member
        else
            free[#free + 1] = member
        end
    end
    if #held > 0 then
        redis.call('SADD', queue, unpack(held))
    end
end
if #free == 0 then
    return { ARGV[5], backlog, in_flight, live, {}, {} }
end

local stamp = next_stamp(stamp_key, ARGV[5], WAITS)
local suffix = node .. ':' .. stamp
local tokens, index = {}, {}
for i, member in ipairs(free) do
    tokens[i] = member .. ':' .. suffix
    index[2 * i - 1] = member
    index[2 * i] = suffix
end
redis.call('SADD', processing, unpack(tokens))
redis.call('HSET', claims, unpack(index))

local failed = {}
if redis.call('EXISTS', attempts) == 1 then
    failed = redis.call('HMGET', attempts, unpack(free))
    for i = 1, #free do
        failed[i] = failed[i] or '0'
    end
end
return { stamp, backlog, in_flight + #free, live, free, failed }
