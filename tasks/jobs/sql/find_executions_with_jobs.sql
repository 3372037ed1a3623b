-- Finds executions with jobs among the newest executions, the newest first.
--
-- :compared  int  how many executions are looked at
-- :tasks     int  how many tasks of each; an execution with jobs has a job for each task, as a rule
-- :most      int  how many at most
-- returns  id of the execution
SELECT e.id
FROM (SELECT id FROM execution ORDER BY id DESC LIMIT %(compared)s) e
CROSS JOIN LATERAL (
    SELECT
    FROM (SELECT id FROM task WHERE execution_id = e.id LIMIT %(tasks)s) t
    JOIN execution_job j ON j.task_id = t.id
    LIMIT 1
) has_job
LIMIT %(most)s
