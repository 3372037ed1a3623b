-- Writes what became of claimed deliveries, whose rows the caller has locked.
--
-- :ids bigint[]  :states text[]  :attempts int[]  :errors text[]
-- :delays float8[]  seconds until it is tried again; NULL: it has ended
UPDATE execution_delivery d
SET
    state = g.state, attempts = g.attempts, last_error = g.error,
    next_at = statement_timestamp() + make_interval(secs => g.delay),
    ended_at = CASE WHEN g.delay IS NULL THEN statement_timestamp() END
FROM unnest(%(ids)s::bigint[], %(states)s::text[], %(attempts)s::int[], %(errors)s::text[], %(delays)s::float8[])
    AS g (id, state, attempts, error, delay)
WHERE d.id = g.id
