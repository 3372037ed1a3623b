-- Locks the open gates of these executions, in the order of their tasks. Additions that come later wait for this
-- transaction.
--
-- :execution_ids bigint[]  (the caller has locked them, and has queued for their gates: queue_for_gates)
-- returns  id, status_revision of the task of each
--
-- Gates are locked before other tasks, whatever their ids. That is safe, because nothing else locks a gate and other
-- tasks without the lock of its execution. The next statement has a newer snapshot, so it sees the tasks of the
-- additions that this transaction has waited for.
SELECT t.id, t.status_revision
FROM execution_gate g
JOIN task t ON t.id = g.task_id
WHERE g.execution_id = ANY(%(execution_ids)s::bigint[]) AND t.status_code < 3
ORDER BY t.id
FOR NO KEY UPDATE OF t
