-- What time it is, for messages that are published now; and notes whose message is not the first one.
--
-- KEYS[1] doubts  zset    JOB whose message may come twice, by when it was sent (us)
-- KEYS[2] since   string  since when this Redis remembers (us): it was empty then
-- ARGV[1] for how long a doubt is remembered, us
-- ARGV[2..] jobs, if any
-- returns {now (us), since (us)}
--
-- A message that was published before this Redis began to remember may be lost, and what was known of its job is.
local doubts, since_key = KEYS[1], KEYS[2]
local memory, now = tonumber(ARGV[1]), now_us()

local since = remembers_since(since_key)
for i = 2, #ARGV do
    redis.call('ZADD', doubts, text(now), ARGV[i])
end
redis.call('ZREMRANGEBYSCORE', doubts, '-inf', text(now - memory))
redis.call('PEXPIRE', doubts, text(memory / 1000))
return { text(now), text(since) }
