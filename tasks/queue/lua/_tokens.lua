-- Tokens: ID:VENDOR:NODE:TIMESTAMP. The suffix of a claim is NODE:TIMESTAMP; all its tokens end with it. Two claims share
-- a token only if the clock goes back to the microsecond in which the same node claimed the same member. Then the member
-- is refreshed once too often at worst.

local function tokens_of(members, suffix)
    local tokens, tail = {}, ':' .. suffix
    for i = 1, #members do
        tokens[i] = members[i] .. tail
    end
    return tokens
end

-- Return the members whose token with this suffix is live, and these tokens. Usually all are live.
local function live_of(processing, members, suffix)
    local tokens = tokens_of(members, suffix)
    local flags, live = redis.call('SMISMEMBER', processing, unpack(tokens)), 0
    for i = 1, #flags do
        live = live + flags[i]
    end
    if live == #flags then
        return members, tokens
    end
    local some, theirs = {}, {}
    for i = 1, #flags do
        if flags[i] == 1 then
            some[#some + 1] = members[i]
            theirs[#theirs + 1] = tokens[i]
        end
    end
    return some, theirs
end
