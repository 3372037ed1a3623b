-- Turns members of the queue into marks of Harbor. They leave the queue, and Harbor's key is written for each of them,
-- or they are put into Harbor's set.
--
-- KEYS[1] queue  KEYS[2] attempts  KEYS[3] waiting
-- ARGV[1] key  the form of Harbor's key, with %s for the id and for the vendor; empty to write the set
-- ARGV[2] set  Harbor's set
-- ARGV[3..] members
-- returns how many members were moved
--
-- A member that is not on the queue any more changes nothing: a worker has claimed it. Harbor's marks are written first:
-- if Redis refuses to write them, ours are still there.
--
-- include _waiting
local queue, attempts, waiting = KEYS[1], KEYS[2], KEYS[3]
local key, set = ARGV[1], ARGV[2]

local members, keys = {}, {}
for i, is_there in ipairs(redis.call('SMISMEMBER', queue, unpack(ARGV, 3))) do
    if is_there == 1 then
        local member = ARGV[i + 2]
        members[#members + 1] = member
        keys[2 * #members - 1] = string.format(key, string.match(member, '^(%d+):(.+)$'))
        keys[2 * #members] = ''
    end
end
if #members == 0 then
    return 0
end
if key == '' then
    redis.call('SADD', set, unpack(members))
else
    redis.call('MSET', unpack(keys))
end
redis.call('SREM', queue, unpack(members))
forget_waiting(waiting, members)
redis.call('HDEL', attempts, unpack(members))
return #members
