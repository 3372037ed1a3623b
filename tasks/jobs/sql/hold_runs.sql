-- Locks the tasks and the jobs of these runs, and returns the runs that still stand.
--
-- :task_ids bigint[]  :jobs text[] (empty: any)  :runs int[]  the number of the run
-- :nodes bigint[]  :processes int[] (NULL: any)               where it runs; no node: it has not begun, its job is sent
-- :breaking bigint[]  the tasks whose end may end the jobs behind them, in the same transaction
-- :waits bool         whether to wait for tasks that another transaction has locked
-- returns  position (from 1) of each run that its job is in, and the revisions of the job and of its task; or NULL of a
--          run that is left, because its task, or that of a job behind it, is locked elsewhere
--
-- Whatever takes a job out of `running` holds its task: so under this lock a run stays. Tasks are locked in id order,
-- as reports lock them, then jobs. The jobs behind are locked here and not when they are ended: two transactions that
-- end jobs that others need would wait for each other. It goes back from the tasks that are locked elsewhere to those
-- that they need, so it reads each job once, and not once for each end in front of it. OFFSET keeps out a join, which
-- would read all needs.
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
awaited AS MATERIALIZED (
    SELECT id FROM task WHERE %(waits)s AND id IN (SELECT id FROM wanted) ORDER BY id FOR NO KEY UPDATE
),
held AS MATERIALIZED (
    SELECT id, job_id, status_revision
    FROM task
    WHERE id IN (SELECT id FROM wanted) AND (SELECT count(*) FROM awaited) >= 0  -- after those
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
),
in_front AS (
    SELECT unnest(ARRAY(  -- PostgreSQL expects few rows of an array
        SELECT id FROM task WHERE id IN (SELECT id FROM wanted) EXCEPT SELECT id FROM held
    )::bigint[]) AS id
    UNION
    SELECT n.needed_id
    FROM in_front f
    CROSS JOIN LATERAL (SELECT needed_id FROM execution_need WHERE job_id = f.id OFFSET 0) n
    WHERE n.needed_id IN (SELECT id FROM wanted)
),
given AS MATERIALIZED (
    SELECT
        g.*,
        task_id IN (SELECT id FROM in_front)
        AND (task_id = ANY(%(breaking)s::bigint[]) OR task_id NOT IN (SELECT id FROM held)) AS is_left
    FROM unnest(
        %(task_ids)s::bigint[], %(jobs)s::text[], %(runs)s::int[], %(nodes)s::bigint[], %(processes)s::int[]
    ) WITH ORDINALITY AS g (task_id, job, run, node, process, position)
),
standing AS MATERIALIZED (
    SELECT g.position, j.revision, h.status_revision
    FROM given g
    JOIN held h ON h.id = g.task_id AND g.job IN ('', h.job_id)
    JOIN execution_job j ON
        j.task_id = g.task_id AND j.run = g.run
        AND CASE WHEN g.node IS NULL THEN j.state = 'sent' ELSE j.node = g.node END
        AND coalesce(j.process = g.process, TRUE)
    WHERE NOT g.is_left
    ORDER BY j.task_id
    FOR NO KEY UPDATE OF j
)
TABLE standing
UNION ALL
SELECT position, NULL, NULL FROM given WHERE is_left
