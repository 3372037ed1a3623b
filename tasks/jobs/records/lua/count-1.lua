-- Adds the results of a pass over the jobs to the counters, counts the pass, and notes when it ended.
--
-- KEYS[1] counts  hash  KIND.WHAT -> how often; KIND.passes; KIND.last: when the last pass ended (us); since (us)
-- ARGV[1] kind  of the pass
-- ARGV[2..] pairs: what was done, how often
-- returns how many passes of this kind have been counted
--
-- The kinds of passes and of results are fixed, so the hash does not grow.
--
-- include _clock
local counts, kind = KEYS[1], ARGV[1]
local now = text(now_us())

local function grow(field, by)
    local count = number(redis.call('HGET', counts, field)) + by
    redis.call('HSET', counts, field, text(count))
    return count
end

redis.call('HSETNX', counts, 'since', now)
for i = 2, #ARGV, 2 do
    grow(kind .. '.' .. ARGV[i], tonumber(ARGV[i + 1]))
end
redis.call('HSET', counts, kind .. '.last', now)
return grow(kind .. '.passes', 1)
