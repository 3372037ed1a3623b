-- Finds clean-ups: the jobs that run even if others fail, and those behind them, such as the rest of a chain.
--
-- :execution_ids bigint[]
-- returns  task_id of each
WITH RECURSIVE anyway AS (
    SELECT n.job_id
    FROM task t
    JOIN execution_need n ON n.job_id = t.id
    WHERE t.execution_id = ANY(%(execution_ids)s::bigint[]) AND n.even_if_failed
    UNION
    SELECT n.job_id
    FROM anyway a
    CROSS JOIN LATERAL (SELECT job_id FROM execution_need WHERE needed_id = a.job_id OFFSET 0) n  -- no join of all
)
SELECT job_id FROM anyway
