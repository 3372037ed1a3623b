-- Locks executions in id order, so that two refreshes wait for each other and never deadlock.
--
-- :ids     bigint[]  the executions asked for
-- :wait    bool      wait for a row that another transaction has locked, or skip it, for a caller that retries it
-- returns  those that exist, are not in quarantine and are now locked, until the transaction ends
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
SELECT ARRAY(SELECT id FROM waited_for UNION ALL SELECT id FROM free)
