-- Of these executions, those that can be refreshed at all: they exist and are not in quarantine.
--
-- :ids     bigint[]
-- returns  id
SELECT e.id
FROM execution e
WHERE
    e.id = ANY(%(ids)s::bigint[])
    AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
