-- Creates the jobs of tasks that are there: waiting.
--
-- :jobs json  a list of {task_id, name, args, kwargs, options, queue, priority, max_attempts, unique_key, follows,
--             takes_result, revision, not_before}; unique_key is null for a job that is not unique, follows is the task
--             before it in its chain, or null, and not_before the moment before which it does not run, or null
--
-- Raises a violation of `job_unique` if a job with one of the keys has been written meanwhile. One value, as in
-- create_tasks.sql of the executions.
INSERT INTO execution_job (
    task_id, name, args, kwargs, options, queue, priority, max_attempts, runs_before, unique_key, holds_key,
    follows_id, takes_result, state, run, revision, unmet, not_before, retries, resent
)
SELECT
    task_id, name, args, kwargs, options, queue, priority, max_attempts, 0, unique_key, unique_key IS NOT NULL,
    follows, takes_result, 'waiting', 0, revision, follows IS NOT NULL, not_before, 0, 0
FROM json_to_recordset(%(jobs)s::json) AS given (
    task_id bigint,
    name text,
    args jsonb,
    kwargs jsonb,
    options jsonb,
    queue text,
    priority smallint,
    max_attempts smallint,
    unique_key text,
    follows bigint,
    takes_result boolean,
    revision bigint,
    not_before timestamptz
)
