-- Locks the gate of an execution in share mode: it ends before this statement or after this transaction. Any number of
-- transactions hold it at once. One that comes while the gate is about to be ended waits (lock_gates).
--
-- :execution_id bigint  (it has a gate, and the caller holds the execution: hold_execution)
-- returns  whether it is open, and its time limit has not passed
WITH gate AS MATERIALIZED (
    SELECT task_id, closes_at, pg_advisory_xact_lock_shared(hashtextextended('execution_gate', execution_id))
    FROM execution_gate
    WHERE execution_id = %(execution_id)s
)
SELECT t.status_code < 3 AND coalesce(g.closes_at > clock_timestamp(), FALSE)
FROM gate g
JOIN task t ON t.id = g.task_id
FOR SHARE OF t
