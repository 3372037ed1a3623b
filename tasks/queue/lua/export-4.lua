-- Turns marks of ours into marks of Harbor. Members leave the queue, and tokens leave processing. Harbor's key is written
-- for each of these members, or they are put into Harbor's set. If that set is the queue itself (we are attached to
-- Harbor), only tokens are marks of ours: they leave processing, and their members are put on the queue.
--
-- KEYS[1] queue       set   ID:VENDOR
-- KEYS[2] processing  set   ID:VENDOR:NODE:TIMESTAMP
-- KEYS[3] attempts    hash  ID:VENDOR -> how often it failed
-- KEYS[4] waiting     zset  ID:VENDOR by when it was put on the queue (us)
-- ARGV[1] key  the form of Harbor's key, with %s for the id and for the vendor; empty to write the set
-- ARGV[2] set  Harbor's set
-- ARGV[3..] members of the queue, and tokens; all tokens of a member are in one page
-- returns how many members were moved
--
-- include _waiting
-- An item that is neither on the queue nor in processing any more changes nothing: a worker has taken or completed it
-- meanwhile. Harbor's marks are written first: if Redis refuses to write them, ours are still there. A member whose token
-- goes leaves the queue as well, so it is never in both places. A message of such a claim that is delivered later finds
-- its tokens gone and does nothing.
local queue, processing, attempts, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local key, set = ARGV[1], ARGV[2]
local is_set_the_queue = key == '' and set == queue

local members, tokens, seen = {}, {}, {}
local function see(member)
    if not seen[member] then
        seen[member] = 'seen'
        members[#members + 1] = member
    end
end
for i = 3, #ARGV do
    local member = string.match(ARGV[i], '^%d+:[^:]+')
    see(member)
    if #member < #ARGV[i] then
        tokens[#tokens + 1] = ARGV[i]
    end
end
if #members == 0 then
    return 0
end

local live_tokens = {}
if not is_set_the_queue then
    for i, is_there in ipairs(redis.call('SMISMEMBER', queue, unpack(members))) do
        if is_there == 1 then
            seen[members[i]] = 'live'
        end
    end
end
if #tokens > 0 then
    for i, is_there in ipairs(redis.call('SMISMEMBER', processing, unpack(tokens))) do
        if is_there == 1 then
            live_tokens[#live_tokens + 1] = tokens[i]
            seen[string.match(tokens[i], '^%d+:[^:]+')] = 'live'
        end
    end
end

local live, written = {}, {}
for _, member in ipairs(members) do
    if seen[member] == 'live' then
        live[#live + 1] = member
        if key ~= '' then
            written[#written + 1] = string.format(key, string.match(member, '^(%d+):(.+)$'))
            written[#written + 1] = ''
        end
    end
end
if #live == 0 then
    return 0
end
if key == '' then
    redis.call('SADD', set, unpack(live))
else
    redis.call('MSET', unpack(written))
end
if is_set_the_queue then
    note_waiting(waiting, live, false)
else
    redis.call('SREM', queue, unpack(live))
    forget_waiting(waiting, live)
end
if #live_tokens > 0 then
    redis.call('SREM', processing, unpack(live_tokens))
end
redis.call('HDEL', attempts, unpack(live))
return #live
