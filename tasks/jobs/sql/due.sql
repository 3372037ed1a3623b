-- Has jobs whose time has come wait no longer for it.
--
-- :queues text[]  NULL: all  :most int
-- returns  the queue of each
UPDATE execution_job j
SET not_before = NULL
FROM (
    SELECT task_id
    FROM execution_job
    WHERE state = 'waiting' AND waits_for = 0 AND not_before <= now()
        AND coalesce(queue = ANY(%(queues)s::text[]), TRUE)
    ORDER BY not_before
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
) due
WHERE j.task_id = due.task_id
RETURNING j.queue
