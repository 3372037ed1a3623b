-- Claims due deliveries: counts an attempt of each and leases it, so that no other process sends it meanwhile.
--
-- :only      bigint    claim for this subscription, whatever its circuit says; NULL: for all webhooks
-- :room      int       how many deliveries of each subscription
-- :sending   bigint[]  the subscriptions of deliveries that the caller is sending, each of which takes one of the room
-- :opens     int       so many failures in a row open the circuit: nothing is sent before its retry_at, and then one
-- :lease     float     seconds until a claimed delivery is due again; for a webhook times its attempts, because what it is
--                      told may take long to read
-- :longest   int       times as long at most
-- returns    id and attempts of each
--
-- Only the earliest pending delivery of each subscription and execution is claimed, so that they arrive in order. A callback
-- does not wait for an earlier end, which is skipped (callbacks.py). The ids as an array, and the aggregate, keep the planner
-- from joins: each row is found by its key.
--
-- Two processes at once: locked rows are skipped, and whether a row is due is checked again after its lock. Each may
-- send one through an open circuit.
WITH wanted AS (
    SELECT
        s.id,
        s.kind,
        CASE WHEN %(only)s::bigint IS NULL AND s.failures >= %(opens)s THEN 1 ELSE %(room)s END
        - cardinality(array_positions(%(sending)s::bigint[], s.id)) AS room
    FROM execution_subscription s
    WHERE
        s.enabled
        AND CASE
            WHEN %(only)s::bigint IS NULL
            THEN s.kind = 'webhook' AND (s.retry_at IS NULL OR s.retry_at <= statement_timestamp())
            ELSE s.id = %(only)s
        END
),
due AS MATERIALIZED (
    SELECT one.id
    FROM wanted w
    CROSS JOIN LATERAL (
        SELECT d.id
        FROM execution_delivery d
        WHERE
            d.subscription_id = w.id AND d.state = 'pending' AND d.next_at <= statement_timestamp()
            AND (w.kind = 'callback' OR d.revision = (
                SELECT min(earliest.revision)
                FROM execution_delivery earliest
                WHERE
                    earliest.subscription_id = d.subscription_id
                    AND earliest.execution_id = d.execution_id
                    AND earliest.state = 'pending'
            ))
        ORDER BY d.next_at, d.id
        LIMIT greatest(w.room, 0)
        FOR NO KEY UPDATE OF d SKIP LOCKED
    ) one
)
UPDATE execution_delivery d
SET
    attempts = d.attempts + 1,
    next_at = statement_timestamp() + make_interval(
        secs => %(lease)s * CASE WHEN %(only)s::bigint IS NULL THEN least(d.attempts + 1, %(longest)s) ELSE 1 END
    )
WHERE d.id = ANY(ARRAY(SELECT id FROM due))
RETURNING d.id, d.attempts
