-- Writes the arguments that jobs have asked for into their rows, with their revision.
--
-- :task_ids bigint[]  :jobs text[]  :revisions bigint[]  :args text[] (JSON)  :kwargs text[] (JSON)
--
-- A row takes only a later revision than its own. So to write arguments again, late or out of order changes nothing.
-- A row whose task belongs to another job stays as it is. The result of the job before it is the first of `args` by
-- now, so the job takes no result any more.
WITH given AS (
    SELECT DISTINCT ON (g.task_id, g.job_id) g.task_id, g.job_id, g.revision, g.args, g.kwargs
    FROM unnest(
        %(task_ids)s::bigint[], %(jobs)s::text[], %(revisions)s::bigint[], %(args)s::text[], %(kwargs)s::text[]
    ) AS g (task_id, job_id, revision, args, kwargs)
    ORDER BY g.task_id, g.job_id, g.revision DESC
),
older AS MATERIALIZED (
    SELECT j.task_id, g.revision, g.args, g.kwargs
    FROM execution_job j
    JOIN given g ON g.task_id = j.task_id
    JOIN task t ON t.id = g.task_id AND t.job_id = g.job_id
    WHERE j.arguments_revision < g.revision
    ORDER BY j.task_id
    FOR NO KEY UPDATE OF j
)
UPDATE execution_job j
SET
    args = o.args::jsonb,
    kwargs = o.kwargs::jsonb,
    arguments_revision = o.revision,
    takes_result = FALSE
FROM older o
WHERE j.task_id = o.task_id
