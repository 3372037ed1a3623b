-- Renews the leases of runs that are under way in a live process.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV[1] forgotten_too  1 to write the lost records again, because the database says that these runs are valid
-- ARGV[2..] for each run: job, task, node, revision, runs so far
-- returns for each run how it was found: 'known', 'forgotten' or 'other'
--
-- include _job
local jobs, is_recorded = KEYS[1], ARGV[1] == '1'

local found = {}
for i = 2, #ARGV, 5 do
    local job, task, node, revision, runs = unpack(ARGV, i, i + 4)
    local record = record_of(jobs, job)
    local lease = standing(record, node, revision)
    if lease == 'forgotten' and is_recorded then
        write_record(jobs, job, running(task, node, revision, tonumber(runs)))
    elseif lease == 'known' then
        record.renewed = now_us()
        write_record(jobs, job, record)
    end
    found[#found + 1] = lease
end
return found
