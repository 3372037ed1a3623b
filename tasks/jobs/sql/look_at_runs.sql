-- Notes what was heard of the runs of a process, and returns the runs that it has by the rows. Its others were stopped, or
-- given to another worker. It also notes in the row of the worker which queues have begun a run lately, and the last of
-- these, for resend.sql.
--
-- :node bigint  :process int
-- :task_ids bigint[]  :runs int[]       its runs
-- :are_heard bool[]  :check_ins text[]  JSON; NULL: nothing new
-- :begun bigint[]                       the task of the last run of each of these queues
-- returns  task_id, run, whether what was heard of it is noted: another transaction may have locked it
--
-- A job has a worker (`node`) and a process only while it runs (job_runs_in_a_process).
WITH free AS MATERIALIZED (  -- a stop holds the others: it must not wait for this statement
    SELECT j.task_id, g.check_in
    FROM execution_job j
    JOIN unnest(%(task_ids)s::bigint[], %(runs)s::int[], %(are_heard)s::bool[], %(check_ins)s::text[])
        AS g (task_id, run, is_heard, check_in) ON g.task_id = j.task_id AND g.run = j.run
    WHERE g.is_heard AND j.node = %(node)s AND j.process = %(process)s
    ORDER BY j.task_id
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
heard AS (
    UPDATE execution_job j
    SET check_in = coalesce(f.check_in::jsonb, j.check_in), heard_at = now()
    FROM free f
    WHERE j.task_id = f.task_id
),
begun AS MATERIALIZED (
    SELECT queue, task_id FROM execution_job WHERE task_id = ANY(%(begun)s::bigint[])
),
noted AS (
    UPDATE execution_node
    SET began = (
        SELECT
            began || jsonb_object_agg(queue, extract(epoch FROM now()))
            || jsonb_build_object('', coalesce(began -> '', '{}') || jsonb_object_agg(queue, task_id))
        FROM begun
    )
    WHERE
        id = %(node)s
        AND (SELECT bool_or(coalesce((began ->> queue)::float8, 0) < extract(epoch FROM now()) - 1) FROM begun)
)
SELECT task_id, run, task_id IN (SELECT task_id FROM free)
FROM execution_job
WHERE state = 'running' AND node = %(node)s AND process = %(process)s
