-- Stops jobs whose tasks have been stopped: deletes the records of waiting jobs, and asks running jobs to stop.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV  jobs
-- returns how many jobs run
--
-- include _job
local jobs = KEYS[1]

local running_now = 0
for i = 1, #ARGV do
    local record = record_of(jobs, ARGV[i])
    if record and record.status == 'Running' then
        record.asked = '1'
        write_record(jobs, ARGV[i], record)
        running_now = running_now + 1
    elseif record and record.code < 3 then
        redis.call('HDEL', jobs, ARGV[i])
    end
end
return running_now
