-- Finds executions by status, the newest first. The column has no index, because a refresh writes it.
--
-- :status         text
-- :task_statuses  text[]  an execution of this status has a task of one of these (none: look at the newest alone)
-- :compared       int     of the newest executions, how many are compared with the status one by one
-- :most           int     how many at most
-- returns  id
--
-- Executions with such tasks are found by jumping through the index task_by_status from one execution to the next, so
-- the cost follows `most` and not the size of a table. Executions without tasks are found among the newest.
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
with_tasks AS (
    SELECT e.id
    FROM execution e
    WHERE
        e.id = ANY(ARRAY(SELECT execution_id FROM jump LIMIT %(most)s + 1))
        AND e.status = %(status)s
),
newest AS (
    SELECT e.id
    FROM execution e
    WHERE
        e.id > coalesce((SELECT id FROM execution ORDER BY id DESC OFFSET %(compared)s LIMIT 1), 0)
        AND e.status = %(status)s
    ORDER BY e.id DESC
    LIMIT %(most)s
)
SELECT id FROM with_tasks
UNION
SELECT id FROM newest
ORDER BY id DESC
LIMIT %(most)s
