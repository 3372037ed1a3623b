-- The first of the original's four statements: reads the stored status and revision of an execution.
--
-- :execution_id bigint
-- returns  status, revision; no row if it is deleted or in quarantine
SELECT e.status, e.revision
FROM execution e
WHERE
    e.id = %(execution_id)s
    AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
