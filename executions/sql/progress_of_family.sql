-- Counts the tasks of an execution and of all its descendants by status: the leaves. The gate of an open execution does
-- not count, nor does the task that stands for a child, because the child's own tasks do. The task of a child that was
-- deleted counts: nothing else is left of it.
--
-- :execution_id bigint
-- returns  status of the execution, status of tasks, how many, and whether one of the family is open (the same in each
--          row). One row for each status of tasks, one with NULL if there are none, no row if there is no such execution
--
-- It reads every task of the family, from the index task_rollup: execution by execution, because a join may read the
-- tasks of all executions. It ends, because a child has a higher id than its parent (link_leads_to_a_later_execution).
WITH RECURSIVE family AS (
    SELECT %(execution_id)s::bigint AS id
    UNION ALL
    SELECT l.child_id
    FROM family f
    JOIN execution_link l ON l.parent_id = f.id
),
gates AS MATERIALIZED (
    SELECT t.status, t.status_code
    FROM family f
    JOIN execution_gate g ON g.execution_id = f.id
    CROSS JOIN LATERAL (SELECT status, status_code FROM task WHERE id = g.task_id OFFSET 0) t
),
counted AS (
    SELECT status, sum(tasks)::bigint AS count
    FROM (
        SELECT t.status, t.tasks
        FROM family f
        CROSS JOIN LATERAL (SELECT status, count(*) AS tasks FROM task WHERE execution_id = f.id GROUP BY status) t
        UNION ALL
        SELECT status, -1 FROM gates
        UNION ALL
        SELECT t.status, -1
        FROM family f
        JOIN execution_link l ON l.parent_id = f.id
        CROSS JOIN LATERAL (SELECT status FROM task WHERE id = l.task_id OFFSET 0) t
    ) one
    GROUP BY status
    HAVING sum(tasks) > 0
)
SELECT
    coalesce(e.status, ''),
    c.status,
    c.count,
    coalesce((SELECT bool_or(status_code < 3) FROM gates), FALSE)
FROM execution e
LEFT JOIN counted c ON TRUE
WHERE e.id = %(execution_id)s
