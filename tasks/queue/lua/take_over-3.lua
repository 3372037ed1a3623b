-- Moves a claim to the node that will work on it, if it is still live: its tokens get a new node and stamp.
--
-- KEYS[1] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[2] nodes       zset    NODE by its last heartbeat (us)
-- KEYS[3] stamp       string  the last stamp issued
-- ARGV[1] suffix of the claim, NODE:TIMESTAMP
-- ARGV[2] the node that takes it
-- ARGV[3] stamp of the previous page, if this is a later page of the same claim; else 0
-- ARGV[4..] members
-- returns {stamp, how many}, and {members} if it was not all of them: the members that are live and now belong to
--         that node
--
-- So a token always names the process whose death must release it. A message that is delivered a second time finds
-- its tokens gone and does nothing.
local processing, nodes, stamp_key = KEYS[1], KEYS[2], KEYS[3]
local suffix, node, stamp = ARGV[1], ARGV[2], ARGV[3]

local members, old = live_members(processing, suffix, 4)
if #members == 0 then
    return { stamp, 0, {} }
end

if stamp == '0' then
    sign_of_life(nodes, node)
    stamp = stamp_after(redis.call('GET', stamp_key), WORKS)
    redis.call('SET', stamp_key, stamp)
end
local new, tail = {}, ':' .. node .. ':' .. stamp
for i = 1, #members do
    new[i] = members[i] .. tail
end
redis.call('SREM', processing, unpack(old))
redis.call('SADD', processing, unpack(new))
if #members == #ARGV - 3 then
    return { stamp, #members }
end
return { stamp, #members, members }
