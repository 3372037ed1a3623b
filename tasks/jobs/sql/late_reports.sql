-- Finds reports that the target has not taken: a page that begins at a random one.
--
-- :since float8  unix seconds: those that were first reported before that
-- :most  int
-- returns  task_id, job, report, is_taken: whether its task has it by now, or a later one, because the answer of the
--          target was lost, or because another program reported
WITH place AS MATERIALIZED (
    SELECT min(task_id) + floor(random() * (max(task_id) - min(task_id) + 1))::bigint AS first
    FROM execution_job
    WHERE report IS NOT NULL
),
page AS MATERIALIZED (
    (SELECT j.task_id, j.report FROM execution_job j
     WHERE j.report IS NOT NULL AND j.task_id >= (SELECT first FROM place)
     ORDER BY j.task_id LIMIT %(most)s)
    UNION ALL
    (SELECT j.task_id, j.report FROM execution_job j
     WHERE j.report IS NOT NULL AND j.task_id < (SELECT first FROM place)
     ORDER BY j.task_id LIMIT %(most)s)
    LIMIT %(most)s
)
SELECT
    p.task_id, t.job_id, p.report,
    t.status_revision * 4 + t.status_code >= (p.report ->> 'revision')::bigint * 4 + CASE p.report ->> 'status'
        WHEN 'Pending' THEN 0
        WHEN 'Scheduled' THEN 1
        WHEN 'Running' THEN 2
        ELSE 3
    END
FROM page p
JOIN task t ON t.id = p.task_id
WHERE (p.report ->> 'since')::float8 < %(since)s
