-- Takes the unique keys from jobs whose task is final, so that another may have them.
--
-- :keys text[]
UPDATE execution_job j
SET unique_key = NULL
FROM task t
WHERE j.unique_key = ANY(%(keys)s::text[]) AND t.id = j.task_id AND t.status_code = 3
