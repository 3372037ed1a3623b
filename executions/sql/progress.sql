-- Counts the tasks of an execution by status, from the index task_rollup alone.
--
-- :execution_id bigint
-- :shortly, :long  interval  two spans of time until now
-- returns  status of the execution, seconds since its start, status of tasks, how many, how many of them ended within
--          each of the two spans; one row for each status of tasks, one with NULL if it has none, no row if there is no
--          such execution
SELECT
    coalesce(e.status, ''),
    coalesce(extract(epoch FROM now() - e.start_time)::float8, 0),
    t.status,
    t.count,
    t.ended_shortly,
    t.ended_long
FROM execution e
LEFT JOIN LATERAL (
    SELECT
        status,
        count(*) AS count,
        count(*) FILTER (WHERE end_time > now() - %(shortly)s::interval) AS ended_shortly,
        count(*) FILTER (WHERE end_time > now() - %(long)s::interval) AS ended_long
    FROM task
    WHERE execution_id = e.id
    GROUP BY status
) t ON TRUE
WHERE e.id = %(execution_id)s
