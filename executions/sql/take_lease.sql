-- Takes a lease if it is free or has expired. Its row exists.
--
-- :work text  :holder text  :lease interval
-- returns  no row if it was taken, else holder and held_until of the lease that is in force
--
-- A lease that ends later than possible was given by a clock that has gone back, so it counts as expired. The clock is
-- read after the row is locked. If another transaction has it, its holder works now, so its lease is in force.
WITH known AS MATERIALIZED (
    SELECT name, holder, held_until FROM execution_lease WHERE name = %(work)s FOR NO KEY UPDATE SKIP LOCKED
),
taken AS (
    UPDATE execution_lease l
    SET holder = %(holder)s, held_until = clock_timestamp() + %(lease)s::interval
    FROM known k
    WHERE
        l.name = k.name
        AND (
            k.held_until IS NULL
            OR k.held_until < clock_timestamp()
            OR k.held_until > clock_timestamp() + 2 * %(lease)s::interval
        )
    RETURNING l.name
)
SELECT coalesce(holder, 'another'), coalesce(held_until, clock_timestamp() + %(lease)s::interval)
FROM execution_lease
WHERE name = %(work)s AND NOT EXISTS (SELECT FROM taken)
