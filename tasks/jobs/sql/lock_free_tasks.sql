-- Locks the tasks that no other transaction has locked, and returns them, with all that may end with them.
--
-- :task_ids bigint[]
-- :breaking bigint[]  those of them whose end may end the jobs behind them, in the same transaction
-- returns  task_id: its row is locked, and so are those of the jobs behind it, if it is breaking; or it was deleted
--
-- OFFSET keeps out a join, which would read all needs.
WITH RECURSIVE line AS (
    SELECT id AS first, id AS task_id FROM unnest(%(task_ids)s::bigint[]) AS g (id)
    UNION
    SELECT l.first, n.job_id
    FROM line l
    CROSS JOIN LATERAL (SELECT job_id FROM execution_need WHERE needed_id = l.task_id OFFSET 0) n
    WHERE l.first = ANY(%(breaking)s::bigint[])
),
held AS MATERIALIZED (
    SELECT id
    FROM task
    WHERE id IN (SELECT task_id FROM line)
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT l.first
FROM line l
LEFT JOIN held h ON h.id = l.task_id
LEFT JOIN task t ON t.id = l.task_id
GROUP BY l.first
HAVING bool_and(h.id IS NOT NULL OR t.id IS NULL)
