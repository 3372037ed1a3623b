-- Locks executions in id order, so that two refreshes wait for each other and never deadlock.
--
-- :ids     bigint[]  the executions asked for
-- :wait    bool      wait for a row that another transaction has locked, or skip it, for a caller that retries it
-- returns  how many exist, are not in quarantine and are now locked, until the transaction ends; and which, as the text
--          of a bigint[], because the next statement takes it as it is
--
-- The next statement reads the rollup, and its snapshot sees what was committed while this one waited. A statement
-- for both would write the rollup of the tasks as they were before the wait.
WITH waited_for AS (
    SELECT e.id
    FROM execution e
    WHERE
        e.id = ANY(%(ids)s::bigint[])
        AND %(wait)s
        AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
    ORDER BY e.id
    FOR NO KEY UPDATE OF e
),
free AS (
    SELECT e.id
    FROM execution e
    WHERE
        e.id = ANY(%(ids)s::bigint[])
        AND NOT %(wait)s
        AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
    ORDER BY e.id
    FOR NO KEY UPDATE OF e SKIP LOCKED
)
SELECT cardinality(held), held::text
FROM (SELECT ARRAY(SELECT id FROM waited_for UNION ALL SELECT id FROM free)) AS of (held)
