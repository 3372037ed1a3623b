-- Reads the state of these tasks and their jobs (task_state_function.sql). Only the database knows whether a job has
-- ended.
--
-- :task_ids bigint[]
-- returns  task_id, job_id, status, status_revision, run_count, how often it may begin in all, the
--          revision of its arguments, the name of this database; no row for a task that is gone or has no job
SELECT state.*
FROM unnest(%(task_ids)s::bigint[]) AS asked (task_id)
CROSS JOIN LATERAL execution_task_state(asked.task_id) AS state
