-- Locks executions in id order, so that two refreshes wait for each other and never deadlock.
--
-- :ids     bigint[]  the executions asked for
-- returns  how many, and which, as the text of a bigint[]: those that exist and are not in quarantine,
--          locked until the transaction ends
--
-- The next statement reads the rollup, not this one. Under READ COMMITTED the next statement gets a new snapshot,
-- which sees all that the transaction we waited for has seen. If one statement did both, a refresh that waited
-- here would write the older answer.
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
