-- Moves marks of Harbor onto the queue: its keys, or members of its set. A mark that is gone by now changes nothing.
--
-- KEYS[1] queue  KEYS[2] waiting
-- ARGV[1] set  Harbor's set, if the marks are its members; empty if they are keys
-- ARGV[2..] each mark, and then its member
-- returns how many marks were moved
--
-- The members are put on the queue first: if Redis refuses one of the commands, the marks are still there. Harbor's keys
-- are on the same server, and not under our prefix, so their names are arguments.
--
-- include _waiting
local queue, waiting, set = KEYS[1], KEYS[2], ARGV[1]

local marks, members = {}, {}
for i = 2, #ARGV, 2 do
    local mark = ARGV[i]
    if (set == '' and redis.call('EXISTS', mark) or redis.call('SISMEMBER', set, mark)) == 1 then
        marks[#marks + 1] = mark
        members[#members + 1] = ARGV[i + 1]
    end
end
if #marks == 0 then
    return 0
end
if redis.call('SADD', queue, unpack(members)) > 0 then
    note_waiting(waiting, members, false)
end
if set == '' then
    return redis.call('DEL', unpack(marks))
end
return redis.call('SREM', set, unpack(marks))
