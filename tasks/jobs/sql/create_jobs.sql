-- Creates the jobs of tasks that are there: waiting.
--
-- :jobs json  a list of {task_id, name, args, kwargs, options, queue, priority, max_attempts, unique_key, takes,
--             waits_for, revision, not_before, limit_key, turn, tenant}, as in the table; unique_key is null for a job
--             that is not unique, limit_key for one without a limit
--
-- Raises a violation of `job_unique` if a job with one of the keys has been written meanwhile. One value, as in
-- create_tasks.sql of the executions.
INSERT INTO execution_job (
    task_id, name, args, kwargs, options, queue, priority, max_attempts, runs_before, unique_key, holds_key,
    takes, waits_for, state, run, revision, not_before, retries, resent, limit_key, admitted, turn, tenant
)
SELECT
    task_id, name, args, kwargs, options, queue, priority, max_attempts, 0, unique_key, unique_key IS NOT NULL,
    takes, waits_for, 'waiting', 0, revision, not_before, 0, 0, limit_key, limit_key IS NULL, turn, tenant
FROM json_populate_recordset(NULL::execution_job, %(jobs)s::json)
