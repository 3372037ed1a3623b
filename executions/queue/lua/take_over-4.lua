-- Hands a claim to the node that will work it, if it is still live: its tokens get a new node and stamp.
--
-- KEYS[1] processing  set     ID:VENDOR:NODE:TIMESTAMP
-- KEYS[2] claims      hash    ID:VENDOR -> NODE:TIMESTAMP
-- KEYS[3] nodes       zset    NODE by its last sign of life (us)
-- KEYS[4] stamp       string  the last stamp given
-- ARGV[1] suffix of the claim, NODE:TIMESTAMP
-- ARGV[2] the node that takes it
-- ARGV[3] stamp of the page before, if this is another page of one claim; else 0
-- ARGV[4..] members
-- returns {stamp, {members}}: what is live and now belongs to that node
--
-- So the tokens always name the process whose death must give them back; a message that is delivered a
-- second time finds its tokens gone and does nothing.
local processing, claims, nodes, stamp_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local suffix, node, stamp = ARGV[1], ARGV[2], ARGV[3]

local members, old = live_members(processing, suffix, 4)
if #members == 0 then
    return { stamp, {} }
end

stamp = next_stamp(stamp_key, stamp, WORKS)
local new, index = {}, {}
for i, member in ipairs(members) do
    new[i] = member .. ':' .. node .. ':' .. stamp
    index[2 * i - 1] = member
    index[2 * i] = node .. ':' .. stamp
end
redis.call('SREM', processing, unpack(old))
redis.call('SADD', processing, unpack(new))
redis.call('HSET', claims, unpack(index))
sign_of_life(nodes, node)
return { stamp, members }
