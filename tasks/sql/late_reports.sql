-- Locks the tasks of these reports, and returns the reports that come too late: their task is gone, belongs to another
-- job, or has ended, and they would reopen it. Only a person reopens an ended task (retry_failed), never a job.
--
-- :task_ids bigint[]  :jobs text[]  :revisions bigint[]
-- returns  the positions of the late reports, from 1
--
-- Rows are locked in id order, as reports lock them, and stay locked until the transaction ends. So a job that is
-- stopped meanwhile stays stopped.
WITH held AS MATERIALIZED (
    SELECT id, job_id, status_code, status_revision
    FROM task
    WHERE id = ANY(%(task_ids)s::bigint[])
    ORDER BY id
    FOR NO KEY UPDATE
)
SELECT g.position
FROM unnest(%(task_ids)s::bigint[], %(jobs)s::text[], %(revisions)s::bigint[])
    WITH ORDINALITY AS g (task_id, job_id, revision, position)
LEFT JOIN held h ON h.id = g.task_id AND h.job_id = g.job_id
WHERE h.id IS NULL OR (h.status_code = 3 AND g.revision > h.status_revision)
