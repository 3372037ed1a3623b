-- Like lock_executions, but never waits: a row that another transaction has locked is skipped.
--
-- :ids     bigint[]  the executions asked for
-- returns  how many, and which, as the text of a bigint[]: those that exist, are not in quarantine, and
--          were free; now locked
--
-- For the queue, which retries skipped rows later: twenty locked rows must not delay a thousand others.
WITH locked AS (
    SELECT e.id
    FROM execution e
    WHERE
        e.id = ANY(%(ids)s::bigint[])
        AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
    ORDER BY e.id
    FOR NO KEY UPDATE OF e SKIP LOCKED
)
SELECT count(*), coalesce(array_agg(id), '{}')::text FROM locked
