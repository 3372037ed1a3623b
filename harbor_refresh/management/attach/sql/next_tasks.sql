-- Reads the next tasks, whatever their status, because Harbor has no index on it. It needs nothing of ours, so it
-- works before the first migration.
--
-- :after  bigint  the last id that was read
-- :page   int     how many to read
-- returns  id, execution_id, vendor_type, job_id, status, status_revision, and for how long it has not changed
SELECT
    id, execution_id, vendor_type, coalesce(job_id, ''), status, coalesce(status_revision, 0),
    coalesce((now() AT TIME ZONE 'UTC') - greatest(update_time, creation_time, start_time), interval '0')
FROM task
WHERE id > %(after)s
ORDER BY id
LIMIT %(page)s
