-- Finds the jobs that another try of an execution runs: those that failed, and those after them in their chains, which
-- were stopped with them.
--
-- :execution_id bigint
-- :among bigint[]  only these jobs, and no job after another job; NULL: all
-- returns  task_id of each
WITH RECURSIVE again AS (
    SELECT j.task_id
    FROM task t
    JOIN execution_job j ON j.task_id = t.id
    WHERE
        t.execution_id = %(execution_id)s
        AND t.status_code = 3
        AND t.status = 'Error'
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
