-- Finds when the next pending delivery may be claimed, after a look that has claimed all it could.
--
-- returns  seconds from now, NULL if no moment is to come
--
-- Only moments to come count, and those of the last second, which may have passed since that look. What is due for longer
-- waits for something else: an earlier delivery of its execution, whose moment counts, or a row that another process
-- has locked. Nothing is sent before retry_at, so what is due until then is due at retry_at.
-- Two probes of the index delivery_due for each subscription, of which there are at most 200 and the handlers.
SELECT min(date_part('epoch', next.at - now()))::float
FROM execution_subscription s
CROSS JOIN LATERAL (
    SELECT least(
        (
            SELECT s.retry_at
            WHERE
                s.retry_at > now() - INTERVAL '1 second'
                AND EXISTS (
                    SELECT FROM execution_delivery d
                    WHERE d.subscription_id = s.id AND d.state = 'pending' AND d.next_at <= s.retry_at
                )
        ),
        (
            SELECT d.next_at
            FROM execution_delivery d
            WHERE
                d.subscription_id = s.id AND d.state = 'pending'
                AND d.next_at > greatest(s.retry_at, now() - INTERVAL '1 second')
            ORDER BY d.next_at
            LIMIT 1
        )
    ) AS at
) next
WHERE s.enabled AND s.missing_since IS NULL
