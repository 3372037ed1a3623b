-- The rollup rule, in one place: the function that derives the status and end_time of executions from their tasks.
--
-- ids bigint[]  the executions; one without tasks has no row, because its status stays as it was set by hand
-- returns   execution_id, status, end_time
--
-- A final status this release does not know (an older one wrote 'Succeed') counts as Success.
-- A function and not a view, so that the ids cannot be left out: they are compared below the aggregate, and the index
-- task_rollup answers without reading the table. Its body is one SELECT, which the planner puts into the query in the
-- place of the call, if the argument is no subquery. For each row of another table: `execution_rollup(ARRAY[e.id])`.
--
-- A migration reads this file: an edit needs a migration.
CREATE FUNCTION execution_rollup(ids bigint[])
RETURNS TABLE (execution_id bigint, status text, end_time timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT
        t.execution_id,
        CASE
            WHEN bool_or(t.status_code < 3) THEN 'Running'
            WHEN bool_or(t.status = 'Error') THEN 'Error'
            WHEN bool_or(t.status = 'Stopped') THEN 'Stopped'
            ELSE 'Success'
        END,
        CASE WHEN bool_or(t.status_code < 3) THEN NULL ELSE max(t.end_time) END
    FROM task t
    WHERE t.execution_id = ANY(ids)
    GROUP BY t.execution_id
$$
