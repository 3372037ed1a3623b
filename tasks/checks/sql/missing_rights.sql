-- Finds the rights that the role of this session lacks.
--
-- :tables     text[]  tables that it reads and writes
-- :functions  text[]  functions that it calls
-- returns  what it is about as GRANT names it, its name, privilege; by the name
SELECT 'TABLE' AS kind, c.relname::text AS name, needed.privilege
FROM pg_class c
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed (privilege)
WHERE
    c.relname = ANY(%(tables)s::text[])
    AND c.relkind IN ('r', 'p')
    AND pg_table_is_visible(c.oid)
    AND NOT has_table_privilege(c.oid, needed.privilege)
UNION ALL
SELECT 'FUNCTION', p.proname::text, 'EXECUTE'
FROM pg_proc p
WHERE
    p.proname = ANY(%(functions)s::text[])
    AND pg_function_is_visible(p.oid)
    AND NOT has_function_privilege(p.oid, 'EXECUTE')
ORDER BY name, privilege
