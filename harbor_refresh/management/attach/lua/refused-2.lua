-- Finds the commands that Redis would refuse to this user. It runs none of them. Redis below 7.0 does not tell.
--
-- KEYS[1]  Harbor's set
-- KEYS[2]  a key of ours
-- ARGV     the commands, their words between blanks
-- returns  the names of those that are refused
local refused = {}

for _, line in ipairs(redis.acl_check_cmd and ARGV or {}) do
    local words = {}
    for word in string.gmatch(line, "%S+") do
        words[#words + 1] = word
    end
    if not redis.acl_check_cmd(unpack(words)) then
        refused[#refused + 1] = words[1]
    end
end
return refused
