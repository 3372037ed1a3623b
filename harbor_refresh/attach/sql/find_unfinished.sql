-- Finds the unfinished tasks with a job among the next tasks: those that have not changed for a time.
--
-- :after  bigint    the last id that was looked at
-- :page   int       how many tasks to read, whatever their status
-- :lost   interval  how long a task must not have changed
-- :gone   interval  a longer time
-- returns  a row for each such task, in id order: id, job_id, execution_id, vendor_type, status, status_revision,
--          and whether it has not changed for the longer time; before them a row without a job_id: the last id that
--          was read (NULL: there are no more), and in the place of execution_id how many tasks were read
--
-- Harbor has no index on the status of tasks. So the page counts rows that were read and not those that were found:
-- each statement is short, however many final tasks lie between two unfinished ones.
-- It needs nothing of ours, so it works before the first migration. A task without a job_id was never submitted.
WITH page AS MATERIALIZED (
    SELECT
        id, job_id, execution_id, vendor_type, status, status_revision,
        (now() AT TIME ZONE 'UTC') - greatest(update_time, creation_time, start_time) AS unchanged
    FROM task
    WHERE id > %(after)s
    ORDER BY id
    LIMIT %(page)s
)
SELECT max(id), NULL, count(*), NULL, NULL, NULL, NULL FROM page
UNION ALL
(
    SELECT
        id, job_id, execution_id, vendor_type, status, coalesce(status_revision, 0), unchanged >= %(gone)s::interval
    FROM page
    WHERE status IN ('Pending', 'Scheduled', 'Running') AND job_id <> '' AND unchanged >= %(lost)s::interval
    ORDER BY id
)
