-- Finds the jobs of executions that run once more: those with a status, and those that follow them in their chains.
--
-- :execution_ids bigint[]
-- :status text     Error, to retry; or Stopped, to resume
-- :first bigint    only this job of that status, with the jobs after it; NULL: all of that status
-- :among bigint[]  only these jobs, and no job after another job; NULL: all
-- returns  task_id of each
--
-- A job whose argument was lost never runs again: the job before it has succeeded, and has handed on no result.
--
-- A job that follows one that did not succeed runs again with that one, never without it: it would wait for a turn
-- that does not come. So a retry leaves out what follows a stopped job, and a resumption what follows a failed one.
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
        AND (b.id IS NULL OR b.status_code < 3 OR b.status = 'Success')
        AND NOT (j.takes_result AND j.handed_on_revision IS NULL AND b.status = 'Success')
        AND (%(among)s::bigint[] IS NULL OR t.id IN (SELECT unnest(%(among)s::bigint[])))
    UNION ALL
    SELECT j.task_id
    FROM again a
    JOIN execution_job j ON j.follows_id = a.task_id
    JOIN task t ON t.id = j.task_id
    WHERE
        t.status_code = 3
        AND t.status <> 'Success'
        AND (%(among)s::bigint[] IS NULL OR t.id IN (SELECT unnest(%(among)s::bigint[])))
)
SELECT task_id FROM again
