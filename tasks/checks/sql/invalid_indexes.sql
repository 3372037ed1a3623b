-- Finds the indexes of some tables that PostgreSQL does not use: CREATE INDEX CONCURRENTLY failed, or another
-- statement that made it. An index of a partitioned table (I) may be invalid while its parts are not.
--
-- :tables  text[]
-- returns  name, of the tables that this session sees
SELECT c.relname::text
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
WHERE
    NOT (i.indisvalid AND i.indisready)
    AND c.relkind = 'i'
    AND t.relname = ANY(%(tables)s::text[])
    AND pg_table_is_visible(t.oid)
ORDER BY 1
