-- Creates the jobs of tasks that are there.
--
-- :jobs json  a list of {task_id, name, args, kwargs, options, max_attempts, unique_key, follows, takes_result};
--             unique_key is null for a job that is not unique, follows is the task before it in its chain, or null
--
-- Raises a violation of `job_unique` if a job with one of the keys has been written meanwhile. One value, as in
-- create_tasks.sql of the executions.
INSERT INTO execution_job (
    task_id, name, args, kwargs, options, max_attempts, runs_before, unique_key, holds_key, follows_id, takes_result
)
SELECT
    task_id, name, args, kwargs, options, max_attempts, 0, unique_key, unique_key IS NOT NULL, follows, takes_result
FROM json_to_recordset(%(jobs)s::json) AS given (
    task_id bigint,
    name text,
    args jsonb,
    kwargs jsonb,
    options jsonb,
    max_attempts smallint,
    unique_key text,
    follows bigint,
    takes_result boolean
)
