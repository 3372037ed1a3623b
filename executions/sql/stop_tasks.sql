-- Stops the tasks of executions that are not final yet, locked in id order. A task that stands for a child follows the
-- child, which the caller stops as well.
--
-- :execution_ids bigint[]  :message text, why; NULL: their messages stay
-- :spared bigint[]  tasks that are locked, and go on
-- returns  execution_id, how many of its tasks were stopped; no row for an execution without such a task
WITH waiting AS MATERIALIZED (
    SELECT id FROM task
    WHERE execution_id = ANY(%(execution_ids)s::bigint[]) AND status_code < 3
        AND NOT EXISTS (SELECT FROM execution_link l WHERE l.task_id = task.id)
    ORDER BY id
    FOR NO KEY UPDATE
),
stopped AS (
    UPDATE task t
    SET
        status = 'Stopped', status_code = 3, update_time = now(), end_time = now(),
        status_message = coalesce(%(message)s, t.status_message)
    FROM waiting w
    WHERE t.id = w.id AND NOT EXISTS (SELECT FROM unnest(%(spared)s::bigint[]) AS s (id) WHERE s.id = w.id)
    RETURNING t.execution_id
)
SELECT execution_id, count(*) FROM stopped GROUP BY execution_id
