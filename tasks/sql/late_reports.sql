-- Locks the tasks of these reports and of the jobs behind those that break their chain, and returns the reports that
-- come too late: their task is gone, belongs to another job, or has ended, and they would reopen it. Only a person
-- reopens an ended task (retry_failed), never a job.
--
-- :task_ids bigint[]  :jobs text[]  :revisions bigint[]
-- :breaking bigint[]  the tasks whose report may end the jobs behind them (stop_chains), in the same transaction
-- returns  the positions of the late reports, from 1
--
-- Rows are locked in id order, as reports lock them, and stay locked until the transaction ends. So a job that is
-- stopped meanwhile stays stopped. The jobs behind are locked here and not when they are ended: two transactions that
-- report the jobs of two chains, and each end a job that the other reports, would wait for each other.
WITH RECURSIVE behind AS (
    SELECT task_id FROM execution_job WHERE follows_id = ANY(%(breaking)s::bigint[])
    UNION
    SELECT j.task_id
    FROM execution_job j
    JOIN behind b ON j.follows_id = b.task_id
),
held AS MATERIALIZED (
    SELECT id, job_id, status_code, status_revision
    FROM task
    WHERE id IN (SELECT unnest(%(task_ids)s::bigint[]) UNION SELECT task_id FROM behind)
    ORDER BY id
    FOR NO KEY UPDATE
)
SELECT g.position
FROM unnest(%(task_ids)s::bigint[], %(jobs)s::text[], %(revisions)s::bigint[])
    WITH ORDINALITY AS g (task_id, job_id, revision, position)
LEFT JOIN held h ON h.id = g.task_id AND h.job_id = g.job_id
WHERE h.id IS NULL OR (h.status_code = 3 AND g.revision > h.status_revision)
