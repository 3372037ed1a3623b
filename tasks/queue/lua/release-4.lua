-- Releases a claim: removes its tokens from processing and returns its members to the queue.
--
-- KEYS[1] queue  KEYS[2] processing  KEYS[3] attempts  KEYS[4] waiting
-- ARGV[1] suffix  of the claim, NODE:TIMESTAMP
-- ARGV[2] limit   number of failures that are too many; 0 if this release is no failure of the members
-- ARGV[3..] members
-- returns {returned, {exhausted}}: how many members are on the queue again, and the members that failed too often
--         and are not
--
-- A token that is no longer live (completed, or recovered by another process) changes nothing. Members are put on the
-- queue first: if Redis refuses it, the tokens are still there.
local queue, processing, attempts, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local suffix, limit = ARGV[1], tonumber(ARGV[2])

local members, tokens = live_of(processing, { unpack(ARGV, 3) }, suffix)
if #members == 0 then
    return { 0, {} }
end

local returned, exhausted = members, {}
if limit > 0 then
    returned = {}
    for _, member in ipairs(members) do
        local failures = number(redis.call('HGET', attempts, member)) + 1
        redis.call('HSET', attempts, member, failures)
        if failures >= limit then
            redis.call('HDEL', attempts, member)
            exhausted[#exhausted + 1] = member
        else
            returned[#returned + 1] = member
        end
    end
end
if #returned > 0 then
    redis.call('SADD', queue, unpack(returned))
    note_waiting(waiting, returned, false)
end
redis.call('SREM', processing, unpack(tokens))
return { #returned, exhausted }
