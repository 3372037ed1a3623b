-- Notes what of the jobs has reached the database. A job whose end is there is forgotten, whatever its record says: the
-- record may be late.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV    triples: job, revision, status that is in the database
-- returns how many were forgotten
--
-- Out of order changes nothing: an acknowledgement below the one that is there is passed over.
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
