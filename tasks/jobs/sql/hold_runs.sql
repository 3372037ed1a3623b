-- Locks the tasks and the jobs of these runs, and returns the runs that still stand.
--
-- :task_ids bigint[]  :jobs text[] (empty: any)  :runs int[]  the number of the run
-- :nodes bigint[]  :processes int[]  NULL: any                where it runs
-- :states text[]                                              where its job must be
-- :breaking bigint[]  the tasks whose end may end the jobs behind them, in the same transaction
-- returns  position (from 1) of each run that its job is in, in that state, and the revisions of the job and of its
--          task
--
-- Whatever takes a job out of `running` holds its task: so under this lock a run stays. Tasks are locked in id order,
-- as reports lock them, then jobs. The jobs behind are locked here and not when they are ended: two transactions that
-- end jobs that others need would wait for each other. OFFSET keeps out a join, which would read all needs.
WITH RECURSIVE behind AS (
    SELECT job_id AS task_id FROM execution_need WHERE needed_id = ANY(%(breaking)s::bigint[])
    UNION
    SELECT n.job_id
    FROM behind b
    CROSS JOIN LATERAL (SELECT job_id FROM execution_need WHERE needed_id = b.task_id OFFSET 0) n
),
held AS MATERIALIZED (
    SELECT id, job_id, status_revision
    FROM task
    WHERE id IN (SELECT unnest(%(task_ids)s::bigint[]) UNION SELECT task_id FROM behind)
    ORDER BY id
    FOR NO KEY UPDATE
)
SELECT g.position, j.revision, h.status_revision
FROM unnest(
    %(task_ids)s::bigint[], %(jobs)s::text[], %(runs)s::int[], %(nodes)s::bigint[], %(processes)s::int[],
    %(states)s::text[]
) WITH ORDINALITY AS g (task_id, job, run, node, process, state, position)
JOIN held h ON h.id = g.task_id AND g.job IN ('', h.job_id)
JOIN execution_job j ON
    j.task_id = g.task_id AND j.run = g.run AND j.state = g.state
    AND coalesce(j.node = g.node, TRUE) AND coalesce(j.process = g.process, TRUE)
ORDER BY j.task_id
FOR NO KEY UPDATE OF j
