-- Finds the indexes that PostgreSQL does not use: CREATE INDEX CONCURRENTLY failed, or another statement that made it.
--
-- returns  name, of the tables that this session sees
SELECT c.relname::text
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
WHERE NOT (i.indisvalid AND i.indisready) AND pg_table_is_visible(i.indrelid)
ORDER BY 1
