-- Renews the leases of runs: their process is alive, and has them under way.
--
-- KEYS[1] jobs  hash  JOB -> its record, while it is in progress
-- ARGV[1] 1 to record those that Redis has forgotten: the database says that they stand
-- ARGV[2..] for each run: job, task, node, revision, runs so far
-- returns for each 'known', 'forgotten' or 'other', as it was found
local jobs, is_recorded = KEYS[1], ARGV[1] == '1'

local found = {}
for i = 2, #ARGV, 5 do
    local job, task, node, revision, runs = unpack(ARGV, i, i + 4)
    local record = record_of(jobs, job)
    local it = standing(record, node, revision)
    if it == 'forgotten' and is_recorded then
        write_record(jobs, job, running(task, node, revision, tonumber(runs)))
    elseif it == 'known' then
        record.renewed = now_us()
        write_record(jobs, job, record)
    end
    found[#found + 1] = it
end
return found
