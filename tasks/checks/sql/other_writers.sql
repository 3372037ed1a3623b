-- Finds the other roles with sessions in this database, if this role may not see their transactions.
--
-- returns  role, by name; no row if this role may see all transactions
SELECT DISTINCT a.usename::text AS role
FROM pg_stat_activity a
WHERE
    a.datname = current_database()
    AND coalesce(a.backend_type, 'client backend') = 'client backend'  -- NULL: this role may not see it
    AND a.usename <> current_user
    AND NOT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
ORDER BY 1
