-- Deletes the tasks of these executions, and writes a tombstone for each; one that is there already is renewed.
--
-- :execution_ids bigint[]  (the caller holds the locks of the executions and of their tasks)
WITH gone AS (
    DELETE FROM task
    WHERE execution_id = ANY(%(execution_ids)s::bigint[])
    RETURNING id, job_id
)
INSERT INTO execution_deleted_task (task_id, job_id, at)
SELECT id, job_id, now() FROM gone
ON CONFLICT (task_id) DO UPDATE SET job_id = excluded.job_id, at = excluded.at
