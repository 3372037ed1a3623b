-- Turns deliveries into dead letters that were due for longer than a delivery may take: nothing was sent meanwhile,
-- because the receiver was away.
--
-- :max_age float  in seconds  :most int
-- returns  id, subscription, execution_id, revision, state, last_error
WITH old AS MATERIALIZED (
    SELECT one.id, s.name
    FROM execution_subscription s
    CROSS JOIN LATERAL (
        SELECT d.id
        FROM execution_delivery d
        WHERE
            d.subscription_id = s.id AND d.state = 'pending'
            AND d.next_at < now() - make_interval(secs => %(max_age)s)
        ORDER BY d.next_at, d.id
        LIMIT %(most)s
        FOR NO KEY UPDATE OF d SKIP LOCKED
    ) one
)
UPDATE execution_delivery d
SET
    state = 'dead',
    next_at = NULL,
    ended_at = now(),
    last_error = CASE WHEN d.last_error = '' THEN 'nothing was sent: the receiver was away' ELSE d.last_error END
FROM old
WHERE d.id = old.id
RETURNING d.id, old.name, d.execution_id, d.revision, d.state, d.last_error
