-- Reads which indexes some tables have, and whether PostgreSQL uses them.
--
-- :tables  text[]
-- returns  name, is_valid; an index whose CREATE INDEX CONCURRENTLY failed is there and is not valid
SELECT c.relname::text AS name, i.indisvalid AND i.indisready AS is_valid
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relname = ANY(%(tables)s::text[]) AND pg_table_is_visible(t.oid)
