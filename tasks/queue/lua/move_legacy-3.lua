-- Moves marks of Harbor onto the queue, or members of the queue back to Harbor. Harbor's marks are keys, or members of
-- its set. One that is gone by now changes nothing: another program has taken it.
--
-- KEYS[1] queue  KEYS[2] attempts  KEYS[3] waiting
-- ARGV[1] set   Harbor's set, if the marks are its members; empty if they are keys
-- ARGV[2] back  1 to move back to Harbor
-- ARGV[3..] each mark, and then its member
-- returns how many were moved
--
-- Each is written before it is deleted in the other place: if Redis refuses to write it, it is still there. Harbor's
-- keys are on the same server, and not under our prefix, so their names are arguments.
local queue, attempts, waiting = KEYS[1], KEYS[2], KEYS[3]
local set, is_back = ARGV[1], ARGV[2] == '1'

local function is_there(mark, member)
    if is_back then
        return redis.call('SISMEMBER', queue, member) == 1
    end
    return (set == '' and redis.call('EXISTS', mark) or redis.call('SISMEMBER', set, mark)) == 1
end

local marks, members = {}, {}
for i = 3, #ARGV, 2 do
    if is_there(ARGV[i], ARGV[i + 1]) then
        marks[#marks + 1], members[#members + 1] = ARGV[i], ARGV[i + 1]
    end
end
if #marks == 0 then
    return 0
end
if not is_back then
    if redis.call('SADD', queue, unpack(members)) > 0 then
        note_waiting(waiting, members, false)
    end
    return set == '' and redis.call('DEL', unpack(marks)) or redis.call('SREM', set, unpack(marks))
end
if set == '' then
    local written = {}
    for i, mark in ipairs(marks) do
        written[2 * i - 1], written[2 * i] = mark, ''
    end
    redis.call('MSET', unpack(written))
else
    redis.call('SADD', set, unpack(marks))
end
forget_waiting(waiting, members)
redis.call('HDEL', attempts, unpack(members))
return redis.call('SREM', queue, unpack(members))
