-- Finds the queues that have jobs whose turn has come, or that are sent, by one step of an index for each queue.
--
-- returns  queue
WITH RECURSIVE ready AS (
    SELECT min(queue) AS queue
    FROM execution_job
    WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted
    UNION ALL
    SELECT (
        SELECT min(queue)
        FROM execution_job
        WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted AND queue > r.queue
    )
    FROM ready r
    WHERE r.queue IS NOT NULL
),
sent AS (
    SELECT min(queue) AS queue FROM execution_job WHERE state = 'sent'
    UNION ALL
    SELECT (SELECT min(queue) FROM execution_job WHERE state = 'sent' AND queue > s.queue)
    FROM sent s
    WHERE s.queue IS NOT NULL
)
SELECT queue FROM (TABLE ready UNION TABLE sent) found WHERE queue IS NOT NULL
