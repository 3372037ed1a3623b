-- Finds executions by the text of the value at a path in their attributes.
--
-- :containing  jsonb[]  documents; attributes with that value contain one of them (the index execution_attributes)
-- :path        text[]   the keys that lead to the value
-- :value       text
-- :compared    int      how many documents that contain one of these are compared
-- returns  id; whether there was nothing more to compare, in every row; one row with NULL if none was found
--
-- The index answers with pages of the table in their order, so a value that most executions have costs no more than
-- `compared` of them, and the newest may be missing. The limit stands outside of the first part: the planner would
-- count on it, and read the whole table for a value that no execution has. PostgreSQL reads a part only as far as needed.
WITH containing AS MATERIALIZED (
    SELECT id, extra_attrs
    FROM execution
    WHERE extra_attrs @> ANY(%(containing)s::jsonb[])
),
candidates AS MATERIALIZED (
    SELECT id, extra_attrs
    FROM containing
    LIMIT %(compared)s + 1
),
read AS (
    SELECT count(*) <= %(compared)s AS is_complete FROM candidates
)
SELECT c.id, r.is_complete
FROM read r
LEFT JOIN candidates c ON jsonb_extract_path_text(c.extra_attrs, VARIADIC %(path)s::text[]) = %(value)s
ORDER BY c.id DESC
