-- Forgets arguments that jobs have asked for and the database has. Later ones stay.
--
-- KEYS[1] arguments  hash  JOB -> TASK|REVISION|JSON, see ../arguments.py
-- ARGV    pairs: job, and the revision of the arguments that are in the database
-- returns nothing
--
-- include _job
local requests = KEYS[1]

for i = 1, #ARGV, 2 do
    if not is_later(requested_revision(requests, ARGV[i]), ARGV[i + 1]) then
        redis.call('HDEL', requests, ARGV[i])
    end
end
