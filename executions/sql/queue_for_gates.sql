-- Locks the open gates of these executions that nothing holds, and queues for the others, in the order of their tasks: a
-- transaction that comes later to add to one of them waits for this one, and this one only for those that have begun.
--
-- :execution_ids bigint[]  (the caller has locked them)
--
-- Locks of rows have no queue for what is held in share mode: each addition would join those that hold the gate, and
-- what ends it would wait until there is a moment without any, which may never come. Advisory locks have a queue. They
-- take room in the server's memory, so there is one for each gate that is in use only.
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
