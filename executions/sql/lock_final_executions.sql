-- Locks executions in id order, those that have a final status and are not locked by another transaction.
--
-- :ids     bigint[]
-- returns  ids bigint[]: those that are locked now, until the transaction ends
--
-- The lock keeps tasks from being added: a new task takes a share lock on its execution. The next statement
-- (lock_final_tasks) has a snapshot of its own, so it sees every task.
WITH locked AS (
    SELECT id
    FROM execution
    WHERE id = ANY(%(ids)s::bigint[]) AND status NOT IN ('Pending', 'Scheduled', 'Running')
    ORDER BY id
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM locked
