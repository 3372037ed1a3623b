-- Like lock_executions, but never waits: a row that somebody else has locked is passed over.
--
-- :ids     bigint[]  the executions asked for
-- returns  how many, and which, as the text of a bigint[]: those that exist, are not in quarantine, and
--          were free; now locked
--
-- For the queue, which can come back: twenty rows locked by one long transaction would otherwise cost a
-- thousand others twenty timeouts. Who refreshes directly must wait (lock_executions), for nobody comes
-- back for him.
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
