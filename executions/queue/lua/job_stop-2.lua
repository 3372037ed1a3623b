-- Stops jobs: who waits is not begun any more, who runs is asked to stop.
--
-- KEYS[1] jobs   hash  JOB -> its record, while it is in progress
-- KEYS[2] stops  zset  JOB that was stopped, by when (us)
-- ARGV[1] for how long stops are remembered, us
-- ARGV[2..] jobs
-- returns how many run
--
-- A stop is remembered until its message must have come: it may come twice.
local jobs, stops = KEYS[1], KEYS[2]
local memory, now = tonumber(ARGV[1]), now_us()

redis.call('ZREMRANGEBYSCORE', stops, '-inf', text(now - memory))
local running = 0
for i = 2, #ARGV do
    local record = record_of(jobs, ARGV[i])
    if not record or record.code < 3 then
        redis.call('ZADD', stops, text(now), ARGV[i])
    end
    if record and record.status == 'Running' then
        running = running + 1
    elseif record and record.code < 3 then
        redis.call('HDEL', jobs, ARGV[i])
    end
end
redis.call('PEXPIRE', stops, text(memory / 1000))
return running
