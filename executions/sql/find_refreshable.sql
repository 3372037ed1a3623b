-- Finds those of the given executions that can be refreshed: they exist and are not in quarantine.
--
-- :ids     bigint[]
-- returns  id
SELECT e.id
FROM execution e
WHERE
    e.id = ANY(%(ids)s::bigint[])
    AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
