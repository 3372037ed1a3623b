-- Reads the tables execution and task as this session sees them.
--
-- returns  name (execution or task), schema (NULL if there is no such table), kind (r: a table), column, type
SELECT
    wanted.name,
    c.relnamespace::regnamespace::text,
    c.relkind::text,
    a.attname,
    format_type(a.atttypid, NULL)
FROM (VALUES ('execution'), ('task')) wanted (name)
LEFT JOIN pg_class c ON c.oid = to_regclass(wanted.name)
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY wanted.name, a.attnum
