-- Takes the unique keys from jobs whose task is final, so that another may have them. What is left in their place
-- says that the job is unique.
--
-- :keys text[]
UPDATE execution_job j
SET unique_key = '~' || j.task_id
FROM task t
WHERE j.unique_key = ANY(%(keys)s::text[]) AND t.id = j.task_id AND t.status_code = 3
