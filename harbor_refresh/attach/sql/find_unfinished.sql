-- Finds the next tasks that have a job, have not ended, and have not changed for a time.
--
-- :after  bigint    the last id that was looked at
-- :page   int       the most rows to return
-- :lost   interval  how long a task must not have changed
-- :gone   interval  a longer time
-- returns  id, job_id, execution_id, vendor_type, status, status_revision, and whether it has not changed for the
--          longer time, in id order
--
-- It needs nothing of ours, so it works before the first migration. A task without a job_id was never submitted.
SELECT
    id, job_id, execution_id, vendor_type, status, coalesce(status_revision, 0),
    greatest(update_time, creation_time, start_time) < now() - %(gone)s
FROM task
WHERE
    id > %(after)s
    AND status IN ('Pending', 'Scheduled', 'Running')
    AND job_id <> ''
    AND greatest(update_time, creation_time, start_time) < now() - %(lost)s
ORDER BY id
LIMIT %(page)s
