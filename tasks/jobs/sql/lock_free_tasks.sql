-- Locks the tasks that no other transaction has locked, and returns them, with all that may end with them.
--
-- :task_ids bigint[]
-- :breaking bigint[]  those of them whose end may end the jobs behind them, in the same transaction
-- returns  task_id: its row is locked, and so are those of the jobs behind it, if it is breaking; or it was deleted
--
-- It goes back from the tasks that are locked elsewhere to those that they need. So it reads each job once, and not once
-- for each end in front of it. OFFSET keeps out a join, which would read all needs.
WITH RECURSIVE behind AS (
    SELECT job_id AS task_id FROM execution_need WHERE needed_id = ANY(%(breaking)s::bigint[])
    UNION
    SELECT n.job_id
    FROM behind b
    CROSS JOIN LATERAL (SELECT job_id FROM execution_need WHERE needed_id = b.task_id OFFSET 0) n
),
wanted AS (
    SELECT unnest(%(task_ids)s::bigint[]) AS id UNION SELECT task_id FROM behind
),
held AS MATERIALIZED (
    SELECT id FROM task WHERE id IN (SELECT id FROM wanted) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
),
busy AS (
    SELECT id FROM task WHERE id IN (SELECT id FROM wanted) EXCEPT SELECT id FROM held
),
in_front AS (
    SELECT unnest(ARRAY(  -- PostgreSQL expects few rows of an array
        SELECT id FROM busy WHERE cardinality(%(breaking)s::bigint[]) > 0
    )::bigint[]) AS id
    UNION
    SELECT n.needed_id
    FROM in_front f
    CROSS JOIN LATERAL (SELECT needed_id FROM execution_need WHERE job_id = f.id OFFSET 0) n
    WHERE n.needed_id IN (SELECT id FROM wanted)
)
SELECT unnest(%(task_ids)s::bigint[])
EXCEPT
SELECT id FROM busy
EXCEPT
(SELECT unnest(%(breaking)s::bigint[]) INTERSECT SELECT id FROM in_front)
