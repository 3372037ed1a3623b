-- Locks final tasks in id order: the given ones, and those whose jobs hold one of the keys.
--
-- :task_ids bigint[]  :keys text[]
-- returns  id of each task that is final, locked until the transaction ends
--
-- To run a final task again, a transaction locks its row, so under this lock a final task stays final. The lock
-- re-reads the task and not its job: the next statement reads whether the job holds its key.
SELECT t.id
FROM task t
WHERE
    t.status_code = 3
    AND t.id IN (
        SELECT unnest(%(task_ids)s::bigint[])
        UNION
        SELECT task_id FROM execution_job WHERE unique_key = ANY(%(keys)s::text[]) AND holds_key
    )
ORDER BY t.id
FOR NO KEY UPDATE OF t
