-- Records that a run of a job goes on; and tells it whether it should stop.
--
-- KEYS[1] jobs   hash    JOB -> its record, while it is in progress
-- KEYS[2] stops  zset    JOB that was stopped, by when (us)
-- KEYS[3] since  string  since when this Redis remembers (us): it was empty then
-- ARGV[1] job  ARGV[2] task  ARGV[3] node  ARGV[4] revision  ARGV[5] runs so far
-- ARGV[6] when the run began, us
-- ARGV[7] message; empty leaves the last one
-- returns 1 if it should stop: it was stopped, or it was given to another node
local jobs, stops, since_key = KEYS[1], KEYS[2], KEYS[3]
local job, message = ARGV[1], ARGV[7]

local record = run_of(jobs, since_key)
if not record or record.code == 3 then
    return 1
end
record.checked_in = text(now_us())
if message ~= '' then
    record.message = message
end
write_record(jobs, job, record)
return redis.call('ZSCORE', stops, job) and 1 or 0
