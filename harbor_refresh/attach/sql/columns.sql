-- Finds the columns that the tables execution and task, as this session sees them, do not have.
--
-- :needed  text[]  as table.column
-- returns  those that are missing; all of a table that is missing
SELECT name
FROM unnest(%(needed)s::text[]) name
LEFT JOIN pg_attribute a
    ON a.attrelid = to_regclass(split_part(name, '.', 1)) AND a.attname = split_part(name, '.', 2) AND NOT a.attisdropped
WHERE a.attname IS NULL
ORDER BY name
