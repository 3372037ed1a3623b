-- Finds the columns that the tables execution and task, as this session sees them, do not have with such a type.
--
-- :needed  text[]  as table.column
-- :kinds   text[]  the category of the type of each
-- returns  those that are missing; all of a table that is missing
SELECT name
FROM unnest(%(needed)s::text[], %(kinds)s::text[]) needed (name, kind)
LEFT JOIN pg_attribute a
    ON a.attrelid = to_regclass(split_part(name, '.', 1)) AND a.attname = split_part(name, '.', 2) AND NOT a.attisdropped
LEFT JOIN pg_type t ON t.oid = a.atttypid AND t.typcategory::text = kind
WHERE t.oid IS NULL
ORDER BY name
