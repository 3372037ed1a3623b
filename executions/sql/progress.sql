-- Counts the tasks of an execution by status, and those that ended recently; deep, those of all its descendants as well.
-- The gate of an open execution does not count, and deep neither does the task of a child, unless the child was deleted.
--
-- :execution_id bigint  :deep bool  :recent interval, how far back an end is recent
-- returns  status of the execution, status of tasks, how many, how many of these ended recently; then the same in each
--          row: the seconds since its start, at most those of :recent, and whether one of these executions is open.
--          One row for each status of tasks, one with NULL if there are none, no row without such an execution
--
-- It reads every task, from the index task_rollup, execution by execution: a join may read those of all executions. The
-- family is an array, because PostgreSQL takes a recursion to be ten times as long, and would compile the statement.
WITH RECURSIVE family AS (
    SELECT %(execution_id)s::bigint AS id
    UNION ALL
    SELECT l.child_id
    FROM family f
    JOIN execution_link l ON l.parent_id = f.id
    WHERE %(deep)s
),
gates AS MATERIALIZED (
    SELECT t.status, t.status_code, t.end_time
    FROM family f
    JOIN execution_gate g ON g.execution_id = f.id
    CROSS JOIN LATERAL (SELECT status, status_code, end_time FROM task WHERE id = g.task_id OFFSET 0) t
),
uncounted AS (
    SELECT status, end_time FROM gates
    UNION ALL
    SELECT t.status, t.end_time
    FROM family f
    JOIN execution_link l ON l.parent_id = f.id
    CROSS JOIN LATERAL (SELECT status, end_time FROM task WHERE id = l.task_id OFFSET 0) t
    WHERE %(deep)s
),
counted AS (
    SELECT status, sum(tasks)::bigint AS tasks, sum(ends)::bigint AS ends
    FROM (
        SELECT t.status, t.tasks, t.ends
        FROM unnest(ARRAY(SELECT id FROM family)) AS f (id)
        CROSS JOIN LATERAL (
            SELECT
                status, count(*) AS tasks,
                count(*) FILTER (WHERE end_time > now() - %(recent)s::interval) AS ends
            FROM task
            WHERE execution_id = f.id
            GROUP BY status
        ) t
        UNION ALL
        SELECT status, -1, -coalesce((end_time > now() - %(recent)s::interval)::int, 0) FROM uncounted
    ) one
    GROUP BY status
    HAVING sum(tasks) > 0
)
SELECT
    coalesce(e.status, ''),
    c.status,
    c.tasks,
    c.ends,
    greatest(extract(epoch FROM least(%(recent)s::interval, now() - e.start_time)), 0)::float8,
    coalesce((SELECT bool_or(status_code < 3) FROM gates), FALSE)
FROM execution e
LEFT JOIN counted c ON TRUE
WHERE e.id = %(execution_id)s
