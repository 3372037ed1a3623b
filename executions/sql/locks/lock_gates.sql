-- Locks the open gates of these executions, in the order of their tasks. Additions that have begun end before; those that
-- come later wait for this transaction.
--
-- :execution_ids bigint[]  (the caller has locked them)
-- returns  id, status_revision of the task of each
--
-- A gate that nothing holds is locked at once. For the others the transaction queues: locks of rows have no queue for
-- what is held in share mode, so a moment without any addition may never come. Advisory locks have one, but take the
-- server's memory, so only gates in use have them.
-- Gates are locked before other tasks, whatever their ids. That is safe, because nothing else locks a gate and other
-- tasks without the lock of its execution. The next statement sees the tasks of the additions that this waited for.
WITH gate AS MATERIALIZED (
    SELECT t.id, g.execution_id
    FROM execution_gate g
    JOIN task t ON t.id = g.task_id
    WHERE g.execution_id = ANY(%(execution_ids)s::bigint[]) AND t.status_code < 3
),
free AS MATERIALIZED (
    SELECT id FROM task WHERE id IN (SELECT id FROM gate) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
),
queued AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended('execution_gate', g.execution_id))
    FROM (SELECT * FROM gate WHERE id NOT IN (SELECT id FROM free) ORDER BY id) AS g
)
SELECT id, status_revision
FROM task
WHERE id IN (SELECT id FROM gate) AND status_code < 3 AND (SELECT count(*) FROM queued) >= 0
ORDER BY id
FOR NO KEY UPDATE
