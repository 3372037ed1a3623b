-- Finds executions by status, the newest first. The column has no index, because a refresh writes it.
--
-- :status         text
-- :task_statuses  text[]  an execution of this status has a task of one of these
-- :most           int     how many at most
-- returns  id, how many executions were looked at; without any of this status, one row without an id
--
-- It jumps through the index task_by_status from one execution to the next, so the cost follows `most` and not the
-- size of a table.
WITH RECURSIVE jump (execution_id) AS (
    SELECT 9223372036854775807
    UNION ALL
    SELECT (
        SELECT max(next.execution_id)
        FROM unnest(%(task_statuses)s::text[]) AS wanted (status)
        CROSS JOIN LATERAL (
            SELECT t.execution_id
            FROM task t
            WHERE t.status = wanted.status AND t.status <> 'Success' AND t.execution_id < j.execution_id
            ORDER BY t.execution_id DESC
            LIMIT 1
        ) next
    )
    FROM jump j
    WHERE j.execution_id IS NOT NULL
),
looked_at AS (
    SELECT array_agg(execution_id) AS ids, count(*) AS count
    FROM (SELECT execution_id FROM jump OFFSET 1 LIMIT %(most)s) j
    WHERE execution_id IS NOT NULL
)
SELECT e.id, l.count
FROM looked_at l
LEFT JOIN execution e ON e.id = ANY(l.ids) AND e.status = %(status)s
ORDER BY e.id DESC
