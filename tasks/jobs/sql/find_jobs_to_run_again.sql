-- Finds the jobs of executions that run once more: those with a status, and those that need them.
--
-- :execution_ids bigint[]
-- :status text     Error, to retry; or Stopped, to resume
-- :first bigint    only this job of that status, with the jobs that need it; NULL: all of that status
-- :among bigint[]  only these jobs, and no other job that needs them; NULL: all
-- returns  task_id of each
--
-- A job whose argument was lost never runs again: the job that it needs has succeeded, and has left no result.
--
-- A job that needs one that did not succeed runs again with that one, never without it: it would wait for a turn that does
-- not come. So a retry leaves out what needs a stopped job, and a resumption what needs a failed one.
--
-- OFFSET keeps out a join, which would read all needs for each job of a line. With `+ 0` the planner expects few rows.
WITH RECURSIVE wanted AS (
    SELECT t.id
    FROM task t
    JOIN execution_job j ON j.task_id = t.id
    WHERE
        t.execution_id = ANY(%(execution_ids)s::bigint[])
        AND t.status_code = 3
        AND t.status = %(status)s
        AND coalesce(t.id = %(first)s::bigint, TRUE)
        AND (%(among)s::bigint[] IS NULL OR t.id IN (SELECT unnest(%(among)s::bigint[])))
    UNION
    SELECT t.id
    FROM wanted w
    CROSS JOIN LATERAL (SELECT job_id FROM execution_need WHERE needed_id = w.id OFFSET 0) n
    CROSS JOIN LATERAL (SELECT id, status_code, status FROM task WHERE id = n.job_id OFFSET 0) t
    WHERE
        t.status_code + 0 = 3
        AND t.status <> 'Success'
        AND (%(among)s::bigint[] IS NULL OR t.id = ANY(%(among)s::bigint[]))
),
left_out AS (
    SELECT w.id::bigint AS id
    FROM wanted w
    JOIN execution_job j ON j.task_id = w.id
    JOIN execution_need n ON n.job_id = w.id
    JOIN task t ON t.id = n.needed_id
    JOIN execution_job needed ON needed.task_id = n.needed_id
    WHERE
        t.status_code = 3
        AND CASE t.status
            WHEN 'Success' THEN j.takes <> 'nothing' AND needed.result_revision IS NULL
            ELSE NOT n.even_if_failed AND t.id NOT IN (SELECT id FROM wanted)
        END
    UNION
    SELECT n.job_id
    FROM left_out l
    JOIN execution_need n ON n.needed_id = l.id AND NOT n.even_if_failed
    WHERE n.job_id IN (SELECT id FROM wanted)
)
SELECT id FROM wanted EXCEPT SELECT id FROM left_out
