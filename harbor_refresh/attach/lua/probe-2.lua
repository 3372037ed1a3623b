-- Tries commands that our scripts use, and changes nothing that lasts. Two commands take back what follows them, so if
-- they are refused, the rest for their key is not tried.
--
-- KEYS[1]  Harbor's set: a member is put in and taken out again, which no other client sees
-- KEYS[2]  a key of ours that no other process uses
-- ARGV     the commands, their words between blanks
-- returns  what Redis says to each command that it refuses for want of a right: command, message, …
local TAKES_BACK = { SREM = true, DEL = true }
local refused, left_out = {}, {}

for _, line in ipairs(ARGV) do
    local words = {}
    for word in string.gmatch(line, "%S+") do
        words[#words + 1] = word
    end
    local command, key = words[1], words[2] or ""
    if not left_out[key] then
        local answer = redis.pcall(unpack(words))
        local said = type(answer) == "table" and answer.err or ""
        -- any other error is one of the key or of the server, and not of a right
        if string.find(said, "ACL") or string.find(said, "NOPERM") or string.find(said, "can't") then
            refused[#refused + 1] = command
            refused[#refused + 1] = said
            left_out[key] = TAKES_BACK[command]
        end
    end
end
return refused
