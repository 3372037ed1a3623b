-- Writes how many retries led to the runs of jobs into the options of their messages.
--
-- :task_ids bigint[]  :jobs text[]  :revisions bigint[]  :retries int[]
--
-- A row takes only a higher number than its own, so to write one again, late or out of order changes nothing. When a
-- job is tried again by hand, its number is removed; a report from before that has an older revision than its task.
WITH given AS (
    SELECT g.task_id, g.job_id, g.revision, max(g.retries) AS retries
    FROM unnest(%(task_ids)s::bigint[], %(jobs)s::text[], %(revisions)s::bigint[], %(retries)s::int[])
        AS g (task_id, job_id, revision, retries)
    GROUP BY g.task_id, g.job_id, g.revision
),
fewer AS MATERIALIZED (
    SELECT j.task_id, g.retries
    FROM execution_job j
    JOIN given g ON g.task_id = j.task_id
    JOIN task t ON t.id = g.task_id AND t.job_id = g.job_id
    WHERE t.status_revision <= g.revision AND coalesce((j.options ->> 'retries')::int, 0) < g.retries
    ORDER BY j.task_id
    FOR NO KEY UPDATE OF j
),
most AS (
    SELECT f.task_id, max(f.retries) AS retries
    FROM fewer f
    GROUP BY f.task_id
)
UPDATE execution_job j
SET options = jsonb_set(j.options, '{retries}', to_jsonb(m.retries))
FROM most m
WHERE j.task_id = m.task_id
