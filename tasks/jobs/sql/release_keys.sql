-- Releases the unique keys of these jobs, so that other jobs may hold them.
--
-- :task_ids bigint[]  of jobs whose tasks are final and locked by this transaction (lock_final_tasks)
-- :keys text[]
UPDATE execution_job
SET holds_key = FALSE
WHERE task_id = ANY(%(task_ids)s::bigint[]) AND unique_key = ANY(%(keys)s::text[]) AND holds_key
