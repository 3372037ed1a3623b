-- Locks in id order the changes of executions that are not told yet, for their deletion.
--
-- :ids bigint[]  executions this transaction has locked, so no change is added
-- returns  how many
--
-- The outbox (write_deliveries) locks them in the same order, many executions at a time. Other changes are told, and
-- only a deletion and the sweep touch these, which exclude each other by the lock of the execution.
WITH locked AS MATERIALIZED (
    SELECT id
    FROM execution_status_change
    WHERE execution_id = ANY(%(ids)s::bigint[]) AND NOT told
    ORDER BY id
    FOR UPDATE
)
SELECT count(*) FROM locked
