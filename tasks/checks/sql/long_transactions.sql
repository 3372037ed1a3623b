-- Finds the transactions that have been open for too long: they hold the watermark of reconcile, and autovacuum.
--
-- :longer_than interval
-- returns  pid, name (the program), seconds; the oldest first, 5 at most
SELECT
    pid,
    coalesce(nullif(application_name, ''), usename::text, 'unknown'),
    extract(epoch FROM clock_timestamp() - xact_start)::float8
FROM pg_stat_activity
WHERE
    datname = current_database()
    AND backend_type = 'client backend'
    AND pid <> pg_backend_pid()
    AND clock_timestamp() - xact_start > %(longer_than)s::interval
ORDER BY xact_start
LIMIT 5
