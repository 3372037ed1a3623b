-- Has jobs whose time has come wait no longer for it.
--
-- :queues text[]  :most int  of each queue
-- returns  the queue of each
UPDATE execution_job j
SET not_before = NULL
FROM unnest(%(queues)s::text[]) AS g (queue)
CROSS JOIN LATERAL (
    SELECT task_id
    FROM execution_job
    WHERE queue = g.queue AND state = 'waiting' AND waits_for = 0 AND not_before <= now()
    ORDER BY not_before
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
) due
WHERE j.task_id = due.task_id
RETURNING j.queue
