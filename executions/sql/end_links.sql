-- Ends the link tasks of executions that are being deleted, if they have not ended: nothing else would end them.
--
-- :ids bigint[]  (the caller has locked them)
-- returns  id, vendor_type of the parents whose tasks changed, to be marked
WITH held AS MATERIALIZED (
    SELECT t.id
    FROM execution_link l
    JOIN task t ON t.id = l.task_id
    WHERE
        l.child_id = ANY(%(ids)s::bigint[])
        AND NOT l.parent_id = ANY(%(ids)s::bigint[])
        AND t.status_code < 3
    ORDER BY t.id
    FOR NO KEY UPDATE OF t
),
ended AS (
    UPDATE task t
    SET
        status = 'Stopped',
        status_code = 3,
        status_message = 'its execution was deleted',
        update_time = now(),
        end_time = now()
    FROM held h
    WHERE t.id = h.id
    RETURNING t.execution_id
)
SELECT e.id, e.vendor_type
FROM execution e
WHERE e.id IN (SELECT execution_id FROM ended)
