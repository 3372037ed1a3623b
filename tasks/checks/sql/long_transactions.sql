-- Finds the transactions that have been open for too long: they hold the watermark of reconcile, and autovacuum.
--
-- :longer_than interval
-- returns  JSON objects: pid, name (the program), seconds; the oldest first, 5 at most
SELECT to_jsonb(open_transactions)
FROM (
    SELECT
        pid,
        coalesce(nullif(application_name, ''), usename::text, 'unknown') AS name,
        extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
) open_transactions
WHERE seconds > extract(epoch FROM %(longer_than)s::interval)
ORDER BY seconds DESC
LIMIT 5
