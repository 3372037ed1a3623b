-- Finds the handlers, and functions of callbacks, that have something due and that no worker runs, and leases them to the worker that is asked.
--
-- :lease float  seconds until another worker is asked
-- returns  id
--
-- By the time of the statement, because in a test all statements are in one transaction.
WITH free AS (
    SELECT s.id
    FROM execution_subscription s
    WHERE
        s.kind <> 'webhook' AND s.enabled AND s.missing_since IS NULL
        AND (s.retry_at IS NULL OR s.retry_at <= statement_timestamp())
        AND EXISTS (
            SELECT FROM execution_delivery d
            WHERE d.subscription_id = s.id AND d.state = 'pending' AND d.next_at <= statement_timestamp()
        )
    ORDER BY s.id
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE execution_subscription s
SET retry_at = statement_timestamp() + make_interval(secs => %(lease)s)
FROM free
WHERE s.id = free.id
RETURNING s.id
