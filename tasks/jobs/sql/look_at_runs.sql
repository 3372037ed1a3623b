-- Notes what was heard of the runs of a process, and returns those that still stand. The others were stopped, or given
-- to another node. It also notes in the row of the node which queues have begun a run lately, for resend.sql.
--
-- :task_ids bigint[]  :runs int[]  :nodes bigint[]  :processes int[]
-- :are_heard bool[]  :check_ins text[]  JSON; NULL: nothing new
-- :node bigint  :begun text[]           the queues
-- returns  task_id, run
--
-- A job has a node and a process only while it runs (job_runs_in_a_process).
WITH given AS (
    SELECT *
    FROM unnest(
        %(task_ids)s::bigint[], %(runs)s::int[], %(nodes)s::bigint[], %(processes)s::int[], %(are_heard)s::bool[],
        %(check_ins)s::text[]
    ) AS g (task_id, run, node, process, is_heard, check_in)
),
free AS MATERIALIZED (  -- a stop holds the others: it must not wait for this statement
    SELECT g.*
    FROM execution_job j
    JOIN given g ON g.task_id = j.task_id AND g.run = j.run AND g.node = j.node AND g.process = j.process
    WHERE g.is_heard
    ORDER BY j.task_id
    FOR NO KEY UPDATE OF j SKIP LOCKED
),
heard AS (
    UPDATE execution_job j
    SET check_in = coalesce(g.check_in::jsonb, j.check_in), heard_at = now()
    FROM free g
    WHERE j.task_id = g.task_id
),
noted AS (
    UPDATE execution_node
    SET began = began || (
        SELECT jsonb_object_agg(queue, extract(epoch FROM now())) FROM unnest(%(begun)s::text[]) AS b (queue)
    )
    WHERE
        id = %(node)s
        AND (
            SELECT bool_or(coalesce((began ->> queue)::float8, 0) < extract(epoch FROM now()) - 1)
            FROM unnest(%(begun)s::text[]) AS b (queue)
        )
)
SELECT g.task_id, g.run
FROM given g
JOIN execution_job j ON j.task_id = g.task_id AND j.run = g.run AND j.node = g.node AND j.process = g.process
