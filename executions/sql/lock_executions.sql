-- Locks executions in id order, so that two refreshes meet in a queue and never in a deadlock.
--
-- :ids     bigint[]  the executions asked for
-- returns  how many, and which, as the text of a bigint[]: those that exist and are not in quarantine,
--          locked until the transaction ends
--
-- The rollup is read by the next statement and not by this one: under READ COMMITTED it gets a new
-- snapshot, which sees all that the transaction we waited for has seen. Reading both in one statement
-- would let a refresh that waited here write the older answer.
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
