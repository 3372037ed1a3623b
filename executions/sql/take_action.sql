-- Takes the lease of an action that is open and free: of the given one, or of the one that was worked on the longest
-- ago.
--
-- :id bigint        NULL: any that was not asked for in a terminal, if no worker has the lease of such an action
-- :holder text  :lease interval
-- returns  id, or no row
--
-- A lease that ends later than possible was given by a clock that has gone back, so it counts as expired. The clock is
-- read after the row is locked. Two workers find the same row; the second waits for the first, sees its lease, and
-- takes nothing.
WITH free AS MATERIALIZED (
    SELECT a.id
    FROM execution_action a
    WHERE
        a.state IN ('queued', 'running')
        AND (
            a.held_until IS NULL
            OR a.held_until < clock_timestamp()
            OR a.held_until > clock_timestamp() + 2 * %(lease)s::interval
        )
        AND (
            a.id = %(id)s::bigint
            OR (
                %(id)s::bigint IS NULL
                AND a.requested_from <> 'terminal'
                AND NOT EXISTS (
                    SELECT
                    FROM execution_action o
                    WHERE
                        o.state IN ('queued', 'running')
                        AND o.requested_from <> 'terminal'
                        AND o.held_until BETWEEN clock_timestamp() AND clock_timestamp() + 2 * %(lease)s::interval
                )
            )
        )
    ORDER BY a.updated_at, a.id
    LIMIT 1
    FOR NO KEY UPDATE
)
UPDATE execution_action a
SET
    state = 'running',
    holder = %(holder)s,
    held_until = clock_timestamp() + %(lease)s::interval,
    begun_at = coalesce(a.begun_at, now()),
    updated_at = clock_timestamp(),
    attempts = a.attempts + 1
FROM free f
WHERE a.id = f.id
RETURNING a.id
