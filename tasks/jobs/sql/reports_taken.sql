-- Forgets reports that the target has taken, unless the job has another one by now.
--
-- :task_ids bigint[]  :reports text[] (JSON)
WITH held AS MATERIALIZED (
    SELECT j.task_id
    FROM unnest(%(task_ids)s::bigint[], %(reports)s::text[]) AS g (task_id, report)
    JOIN execution_job j ON j.task_id = g.task_id AND j.report = g.report::jsonb
    ORDER BY j.task_id
    FOR NO KEY UPDATE OF j
)
UPDATE execution_job j
SET report = NULL
FROM held h
WHERE j.task_id = h.task_id
