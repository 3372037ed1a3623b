-- Reads the state of these tasks and their jobs. Only the database knows whether a job has ended.
--
-- :task_ids bigint[]
-- returns  task_id, job_id, status, status_revision, run_count, how often it may begin in all, the name of this
--          database; no row for a task that is gone or has no job
SELECT
    t.id,
    t.job_id,
    t.status,
    t.status_revision,
    t.run_count,
    j.runs_before + j.max_attempts,
    (SELECT database FROM execution_redis_memory)
FROM task t
JOIN execution_job j ON j.task_id = t.id
WHERE t.id = ANY(%(task_ids)s::bigint[])
