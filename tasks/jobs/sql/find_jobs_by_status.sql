-- Finds jobs whose task has a status, those of the newest executions first.
--
-- :status    text  any but Success, which the index task_by_status leaves out
-- :compared  int   how many tasks of that status are looked at
-- :most      int   how many jobs at most
-- returns  task_id
--
-- OFFSET 0 keeps the look-up of a job beside each task, so that the order of the index stays, and the search ends with
-- the last job that is wanted.
SELECT t.id
FROM (
    SELECT id
    FROM task
    WHERE status = %(status)s AND status <> 'Success'
    ORDER BY execution_id DESC, id DESC
    LIMIT %(compared)s
) t
CROSS JOIN LATERAL (SELECT FROM execution_job j WHERE j.task_id = t.id OFFSET 0) its_job
LIMIT %(most)s
