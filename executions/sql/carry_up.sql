-- Brings the link tasks of these executions to their status and end, after it was written in this transaction.
--
-- :ids bigint[]  executions that this transaction has locked; most have no parent
-- returns  id, vendor_type of the parents whose tasks changed, to be marked
--
-- The revision of a link task is that of its child, so it leaves a final status only with a newer one, as another run.
-- Tasks are locked in id order, after executions. Two refreshes never wait for each other here, because only the refresh
-- that has locked the child writes its link task.
WITH held AS MATERIALIZED (
    SELECT t.id, l.child_id
    FROM execution_link l
    JOIN task t ON t.id = l.task_id
    WHERE l.child_id = ANY(%(ids)s::bigint[])
    ORDER BY t.id
    FOR NO KEY UPDATE OF t
),
carried AS (
    UPDATE task t
    SET
        status = e.status,
        status_code = CASE e.status WHEN 'Pending' THEN 0 WHEN 'Scheduled' THEN 1 WHEN 'Running' THEN 2 ELSE 3 END,
        status_revision = greatest(t.status_revision, e.revision),
        status_message = CASE WHEN e.status = 'Error' THEN 'execution ' || e.id || ' ended as Error' ELSE '' END,
        run_count = t.run_count + CASE WHEN t.status_code = 3 THEN 1 ELSE 0 END,
        update_time = now(),
        end_time = e.end_time
    FROM held h
    JOIN execution e ON e.id = h.child_id
    WHERE t.id = h.id AND (t.status, t.end_time) IS DISTINCT FROM (e.status, e.end_time)
    RETURNING t.execution_id
)
SELECT e.id, e.vendor_type
FROM execution e
WHERE e.id IN (SELECT execution_id FROM carried)
