-- Writes the limits that the code declares.
--
-- :limits json      a list of {name, concurrency, rate, per}; NULL: no such limit
-- :if_changed bool  also those that are there and say something else; what an administrator has set stays
--
-- A row that is as it should be is not touched, and not locked: the sender locks it for a moment (admit_function.sql).
INSERT INTO execution_limit (name, concurrency, rate, per, declared)
SELECT g.name, g.concurrency, g.rate, g.per, d.declared
FROM json_populate_recordset(NULL::execution_limit, %(limits)s::json) g
CROSS JOIN LATERAL (
    SELECT jsonb_build_object('concurrency', g.concurrency, 'rate', g.rate, 'per', g.per) AS declared
) d
LEFT JOIN execution_limit l ON l.name = g.name
WHERE l.name IS NULL OR (%(if_changed)s AND l.declared <> d.declared)
ORDER BY g.name
ON CONFLICT (name) DO UPDATE
SET
    concurrency = CASE execution_limit.changed_by WHEN '' THEN EXCLUDED.concurrency ELSE execution_limit.concurrency END,
    rate = CASE execution_limit.changed_by WHEN '' THEN EXCLUDED.rate ELSE execution_limit.rate END,
    per = CASE execution_limit.changed_by WHEN '' THEN EXCLUDED.per ELSE execution_limit.per END,
    declared = EXCLUDED.declared
