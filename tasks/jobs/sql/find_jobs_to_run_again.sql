-- Finds the jobs of executions that run once more: those with a status, and those after them in their chains, which
-- were stopped.
--
-- :execution_ids bigint[]
-- :status text     Error, to retry; or Stopped, to resume
-- :first bigint    only this job of that status, with the jobs after it; NULL: all of that status
-- :among bigint[]  only these jobs, and no job after another job; NULL: all
-- returns  task_id of each
--
-- A job whose argument was lost never runs again: the job before it has succeeded, and has handed on no result.
--
-- A job that was stopped because a job before it in its chain has failed is not resumed: it runs again when that job
-- is retried.
WITH RECURSIVE again AS (
    SELECT j.task_id
    FROM task t
    JOIN execution_job j ON j.task_id = t.id
    LEFT JOIN task b ON b.id = j.follows_id
    WHERE
        t.execution_id = ANY(%(execution_ids)s::bigint[])
        AND t.status_code = 3
        AND t.status = %(status)s
        AND (%(first)s::bigint IS NULL OR t.id = %(first)s::bigint)
        AND (t.status = 'Error' OR b.id IS NULL OR b.status_code < 3 OR b.status = 'Success')
        AND NOT (j.takes_result AND j.handed_on_revision IS NULL AND b.status = 'Success')
        AND (%(among)s::bigint[] IS NULL OR t.id IN (SELECT unnest(%(among)s::bigint[])))
    UNION ALL
    SELECT j.task_id
    FROM again a
    JOIN execution_job j ON j.follows_id = a.task_id
    JOIN task t ON t.id = j.task_id
    WHERE
        t.status = 'Stopped'
        AND (%(among)s::bigint[] IS NULL OR t.id IN (SELECT unnest(%(among)s::bigint[])))
)
SELECT task_id FROM again
