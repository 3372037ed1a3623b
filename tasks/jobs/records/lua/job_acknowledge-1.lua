-- Records which reports of jobs have reached the database. The record of a job whose end is there is deleted, whatever
-- it says, because the record may be late.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV    triples: job, and the revision and status that are in the database
-- returns how many records were deleted
--
-- The order of calls does not matter: an acknowledgement older than the recorded one is ignored.
--
-- include _job
local jobs = KEYS[1]

local forgotten = 0
for i = 1, #ARGV, 3 do
    local job, revision, status = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local record = record_of(jobs, job)
    if record then
        local last, last_status = string.match(record.acknowledged, '^(%d+) (%a+)')
        local is_ahead = not last or is_later(revision, last)
            or (revision == last and CODE[status] > CODE[last_status])
        if CODE[status] == 3 and not is_later(record.revision, revision) then
            redis.call('HDEL', jobs, job)
            forgotten = forgotten + 1
        elseif is_ahead then
            record.acknowledged = revision .. ' ' .. status .. ' ' .. record.checked_in
            write_record(jobs, job, record)
        end
    end
end
return forgotten
