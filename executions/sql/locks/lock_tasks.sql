-- Locks all tasks of executions in id order, for their deletion.
--
-- :ids bigint[]
-- returns  execution_id, the lowest status_code of its tasks; no row for an execution without tasks
WITH locked AS MATERIALIZED (
    SELECT execution_id, status_code
    FROM task
    WHERE execution_id = ANY(%(ids)s::bigint[])
    ORDER BY id
    FOR UPDATE
)
SELECT execution_id, min(status_code) FROM locked GROUP BY execution_id
