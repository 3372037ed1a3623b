-- Drops trace contexts that a refresh has included. Contexts that were kept after it had read them stay.
--
-- KEYS[1] traces  hash  ID:VENDOR -> lines `TIMESTAMP CONTEXT`, the latest last
-- ARGV[1..] pairs of a member and the lines that were read
-- returns how many members keep none any more
local traces = KEYS[1]

local emptied = 0
for i = 1, #ARGV, 2 do
    local now = redis.call('HGET', traces, ARGV[i])
    if now then
        local was_read, left = {}, {}
        for one in string.gmatch(ARGV[i + 1], '[^\n]+') do
            was_read[one] = true
        end
        for one in string.gmatch(now, '[^\n]+') do
            if not was_read[one] then
                left[#left + 1] = one
            end
        end
        if #left > 0 then
            redis.call('HSET', traces, ARGV[i], table.concat(left, '\n'))
        else
            redis.call('HDEL', traces, ARGV[i])
            emptied = emptied + 1
        end
    end
end
return emptied
