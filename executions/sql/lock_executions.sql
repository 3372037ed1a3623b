-- Locks executions in id order, so that two refreshes wait for each other and never deadlock.
--
-- :ids     bigint[]  the executions asked for
-- returns  how many, and which, as the text of a bigint[]: those that exist and are not in quarantine,
--          locked until the transaction ends
--
-- This statement only locks; the next one reads the rollup, and its snapshot sees what was committed while this one
-- waited. One statement for both would write the rollup of the tasks as they were before the wait.
WITH locked AS (
    SELECT e.id
    FROM execution e
    WHERE
        e.id = ANY(%(ids)s::bigint[])
        AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
    ORDER BY e.id
    FOR NO KEY UPDATE OF e
)
SELECT count(*), coalesce(array_agg(id), '{}')::text FROM locked
