-- Finds the columns that the tables execution and task, as this session sees them, do not have with such a type.
--
-- :needed  text[]  as table.column
-- :types   text[]  the type of each; another of the same category will do
-- returns  those that are missing; all of a table that is missing
SELECT name
FROM unnest(%(needed)s::text[], %(types)s::text[]) needed (name, type)
JOIN pg_type w ON w.oid = to_regtype(type)
LEFT JOIN pg_attribute a
    ON a.attrelid = to_regclass(split_part(name, '.', 1)) AND a.attname = split_part(name, '.', 2) AND NOT a.attisdropped
LEFT JOIN pg_type t ON t.oid = a.atttypid AND t.typcategory = w.typcategory
WHERE t.oid IS NULL
ORDER BY name
