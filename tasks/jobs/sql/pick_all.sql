-- Picks the jobs of these executions whose turn has come, whatever their time: in eager mode, where no other process
-- runs one.
--
-- :execution_ids bigint[]
-- returns  what pick.sql returns, in the order in which they are to run
WITH picked AS (
    UPDATE execution_job j
    SET state = 'sent', sent_at = now(), not_before = NULL
    FROM task t
    WHERE t.execution_id = ANY(%(execution_ids)s::bigint[]) AND t.id = j.task_id AND j.state = 'waiting' AND NOT j.unmet
    RETURNING
        j.task_id, t.job_id, j.run, j.name, j.queue, j.options, j.retries, left(j.args::text, 200),
        left(j.kwargs::text, 200)
)
SELECT * FROM picked ORDER BY task_id
