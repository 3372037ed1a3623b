-- Notes what of the jobs has landed in the database. Whose end has landed is forgotten, whatever its record says: it may
-- not have been told.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV    triples: job, revision, status that landed
-- returns how many were forgotten
--
-- Out of order changes nothing: an acknowledgement below the one that is there is passed over.
local jobs = KEYS[1]

local forgotten = 0
for i = 1, #ARGV, 3 do
    local job, revision, status = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
    local record = record_of(jobs, job)
    if record then
        local last_revision, last_status = string.match(record.acknowledged, '^(%d+) (%a+)')
        local last = last_revision and last_revision * 4 + CODE[last_status] or -1
        if CODE[status] == 3 and revision >= record.revision then
            redis.call('HDEL', jobs, job)
            forgotten = forgotten + 1
        elseif revision * 4 + CODE[status] > last then
            record.acknowledged = text(revision) .. ' ' .. status .. ' ' .. record.checked_in
            write_record(jobs, job, record)
        end
    end
end
return forgotten
