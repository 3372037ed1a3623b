-- Stops what waits for its turn in a chain that was broken: these tasks and all that follow them.
--
-- :task_ids bigint[]
-- Their execution needs no mark: it is that of the task that broke the chain, whose report marks it.
WITH RECURSIVE rest AS (
    SELECT task_id FROM execution_job WHERE task_id = ANY(%(task_ids)s::bigint[])
    UNION
    SELECT j.task_id FROM execution_job j JOIN rest r ON j.follows_id = r.task_id
),
waiting AS MATERIALIZED (
    SELECT id FROM task WHERE id IN (SELECT task_id FROM rest) AND status_code < 3 ORDER BY id FOR NO KEY UPDATE
)
UPDATE task t
SET
    status = 'Stopped',
    status_code = 3,
    status_message = 'a job before it in its chain did not succeed',
    update_time = now(),
    end_time = now()
FROM waiting w
WHERE t.id = w.id
