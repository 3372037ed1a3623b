-- Locks the open gates of these executions that nothing holds, and queues for the others, in the order of their tasks: a
-- transaction that comes later to add to one of them waits for this one, and this one only for those that have begun.
--
-- :execution_ids bigint[]  (the caller has locked them)
--
-- Locks of rows have no queue for what is held in share mode: what ends the gate would wait for a moment without any
-- addition, which may never come. Advisory locks have one, but take the server's memory: so only for gates in use.
WITH free AS MATERIALIZED (
    SELECT t.id
    FROM execution_gate g
    JOIN task t ON t.id = g.task_id
    WHERE g.execution_id = ANY(%(execution_ids)s::bigint[]) AND t.status_code < 3
    ORDER BY t.id
    FOR NO KEY UPDATE OF t SKIP LOCKED
)
SELECT pg_advisory_xact_lock(hashtextextended('execution_gate', g.execution_id))
FROM execution_gate g
JOIN task t ON t.id = g.task_id
WHERE g.execution_id = ANY(%(execution_ids)s::bigint[]) AND t.status_code < 3
    AND t.id NOT IN (SELECT id FROM free)
ORDER BY t.id
