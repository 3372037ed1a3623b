-- Moves a claim that waits to the node that will work on it: its live tokens get that node, and a new stamp.
--
-- KEYS[1] processing  KEYS[2] nodes
-- ARGV[1] suffix     of the claim, NODE:TIMESTAMP
-- ARGV[2] node       the node that takes it
-- ARGV[3] new_stamp  the stamp that the first page of the same claim got; empty in the first page
-- ARGV[4..] members
-- returns {stamp, taken}, and {members} if these were not all: the members that are live and now belong to that node
--
-- So a token always names the process whose death must release it. A message that is delivered a second time finds
-- its tokens gone and does nothing.
local processing, nodes = KEYS[1], KEYS[2]
local suffix, node, stamp = ARGV[1], ARGV[2], ARGV[3]
local members = { unpack(ARGV, 4) }

local live, tokens = live_of(processing, members, suffix)
if #live == 0 then
    return { stamp, 0, {} }
end
if stamp == '' then
    heartbeat(nodes, node)
    stamp = text(now_us())
end
redis.call('SREM', processing, unpack(tokens))
redis.call('SADD', processing, unpack(tokens_of(live, node .. ':' .. stamp)))
if #live == #members then
    return { stamp, #live }
end
return { stamp, #live, live }
