-- Finds the changes of these executions that this transaction has written.
--
-- :ids  bigint[]  executions, 500 at most
-- returns  execution_id, revision, from_status, to_status
--
-- Run inside the transaction of the refresh: the rows that it writes have its time (refresh_executions.sql), and the row
-- of the highest revision is found by the unique index on (execution_id, revision).
SELECT c.execution_id, c.revision, c.from_status, c.to_status
FROM unnest(%(ids)s::bigint[]) AS followed (id)
CROSS JOIN LATERAL (
    SELECT execution_id, revision, from_status, to_status, at
    FROM execution_status_change
    WHERE execution_id = followed.id
    ORDER BY revision DESC
    LIMIT 1
) AS c
WHERE c.at = now()
