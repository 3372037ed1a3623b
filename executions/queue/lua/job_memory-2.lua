-- Since when this Redis remembers, and whether somebody has looked up what it cannot know: it was empty then.
--
-- KEYS[1] since  string  since when this Redis remembers (us)
-- KEYS[2] seen   string  the `since` for which that was looked up
-- ARGV[1] node ttl, us
-- ARGV[2] the `since` for which it has been looked up now; 0 to ask only
-- returns {since (us), 1 if that is so fresh that not all who are alive have told it what they run, 1 if it was
--         looked up}
local since_key, seen_key = KEYS[1], KEYS[2]
local ttl, looked_up = tonumber(ARGV[1]), ARGV[2]

if looked_up ~= '0' then
    redis.call('SET', seen_key, looked_up)
end
local since = remembers_since(since_key)
return { text(since), now_us() - since <= ttl and 1 or 0, redis.call('GET', seen_key) == text(since) and 1 or 0 }
