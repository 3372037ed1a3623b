-- Counts the tasks of an execution by status, from the index task_rollup alone.
--
-- :execution_id bigint
-- returns  status of the execution, seconds since its start, status of tasks, how many; one row for each status
--          of tasks, one with NULL if it has none, no row if there is no such execution
SELECT e.status, extract(epoch FROM now() - e.start_time)::float8, t.status, t.count
FROM execution e
LEFT JOIN LATERAL (
    SELECT status, count(*) AS count FROM task WHERE execution_id = e.id GROUP BY status
) t ON TRUE
WHERE e.id = %(execution_id)s
