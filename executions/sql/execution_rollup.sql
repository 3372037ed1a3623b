-- The rollup rule, in one place: derives the status and end_time of an execution from its tasks.
--
-- An execution without tasks has no row here: its status stays as it was set by hand.
-- A final status this release does not know (an older one wrote 'Succeed') counts as Success.
-- Always query it with `execution_id = ANY(...)`: the condition is pushed below the aggregate, and the index
-- task_rollup answers it without reading the table.
CREATE VIEW execution_rollup AS
SELECT
    execution_id,
    CASE
        WHEN bool_or(status_code < 3) THEN 'Running'
        WHEN bool_or(status = 'Error') THEN 'Error'
        WHEN bool_or(status = 'Stopped') THEN 'Stopped'
        ELSE 'Success'
    END AS status,
    CASE WHEN bool_or(status_code < 3) THEN NULL ELSE max(end_time) END AS end_time
FROM task
GROUP BY execution_id
