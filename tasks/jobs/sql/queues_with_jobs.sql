-- Finds the queues that have jobs in one state, by one step of an index for each queue.
--
-- :ready bool  whose turn has come, or (FALSE) that are sent  :queues text[]  among these; NULL: all
-- returns  queue
WITH RECURSIVE ready AS (
    (SELECT queue FROM execution_job WHERE state = 'waiting' AND NOT unmet AND not_before IS NULL ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT j.queue
        FROM execution_job j
        WHERE j.state = 'waiting' AND NOT j.unmet AND j.not_before IS NULL AND j.queue > r.queue
        ORDER BY j.queue
        LIMIT 1
    )
    FROM ready r
    WHERE r.queue IS NOT NULL
),
sent AS (
    (SELECT queue FROM execution_job WHERE state = 'sent' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM execution_job j WHERE j.state = 'sent' AND j.queue > s.queue ORDER BY j.queue LIMIT 1)
    FROM sent s
    WHERE s.queue IS NOT NULL
)
SELECT queue
FROM (
    SELECT queue FROM ready WHERE %(ready)s
    UNION ALL
    SELECT queue FROM sent WHERE NOT %(ready)s
) found
WHERE queue IS NOT NULL AND coalesce(queue = ANY(%(queues)s::text[]), TRUE)
