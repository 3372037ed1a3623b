-- Takes the lease of reconcile if it is free or has expired.
--
-- :holder text  :lease interval
-- returns  taken, holder, held_until
--          taken: of the lease that had expired, or NULL if it was free; not taken: of the lease that holds
--
-- A lease that ends later than a lease can was given by a clock that went back since: it counts as expired. The
-- clock is asked after the row is locked, because the holder may extend the lease meanwhile. A row that is locked
-- is in use at this moment, so its lease holds.
WITH known AS MATERIALIZED (
    SELECT id, holder, held_until FROM execution_watermark WHERE id = 1 FOR NO KEY UPDATE SKIP LOCKED
),
taken AS (
    UPDATE execution_watermark w
    SET holder = %(holder)s, held_until = clock_timestamp() + %(lease)s::interval
    FROM known k
    WHERE
        w.id = k.id
        AND (
            k.held_until IS NULL
            OR k.held_until < clock_timestamp()
            OR k.held_until > clock_timestamp() + 2 * %(lease)s::interval
        )
    RETURNING k.holder, k.held_until
)
SELECT TRUE, holder, held_until FROM taken
UNION ALL
SELECT FALSE, coalesce(holder, 'another'), coalesce(held_until, clock_timestamp() + %(lease)s::interval)
FROM execution_watermark
WHERE id = 1 AND NOT EXISTS (SELECT FROM taken)
