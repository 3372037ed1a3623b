-- Finds all jobs that need these, or need one of those.
--
-- :task_ids bigint[]
-- returns  task_id of each
--
-- It reads each job once. OFFSET keeps out a join, which would read all needs.
WITH RECURSIVE behind AS (
    SELECT job_id FROM execution_need WHERE needed_id = ANY(%(task_ids)s::bigint[])
    UNION
    SELECT n.job_id
    FROM behind b
    CROSS JOIN LATERAL (SELECT job_id FROM execution_need WHERE needed_id = b.job_id OFFSET 0) n
)
SELECT job_id FROM behind
