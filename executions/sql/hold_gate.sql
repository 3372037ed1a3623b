-- Locks the gate of an execution in share mode: it ends before this statement or after this transaction. Any number of
-- transactions hold it at once.
--
-- :execution_id bigint  (the caller holds the execution: hold_execution)
-- returns  whether it is open, and its time limit has not passed; no row for an execution without a gate
SELECT t.status_code < 3 AND coalesce(g.closes_at > clock_timestamp(), FALSE)
FROM execution_gate g
JOIN task t ON t.id = g.task_id
WHERE g.execution_id = %(execution_id)s
FOR SHARE OF t
