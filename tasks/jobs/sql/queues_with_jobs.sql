-- Finds the queues that have jobs whose turn has come, or that are sent, by one step of an index for each queue.
--
-- returns  queue
WITH RECURSIVE ready AS (
    (SELECT queue FROM execution_job WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted
    ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT queue
        FROM execution_job
        WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted AND queue > r.queue
        ORDER BY queue
        LIMIT 1
    )
    FROM ready r
    WHERE r.queue IS NOT NULL
),
sent AS (
    (SELECT queue FROM execution_job WHERE state = 'sent' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM execution_job WHERE state = 'sent' AND queue > s.queue ORDER BY queue LIMIT 1)
    FROM sent s
    WHERE s.queue IS NOT NULL
)
SELECT queue FROM ready WHERE queue IS NOT NULL
UNION
SELECT queue FROM sent WHERE queue IS NOT NULL
