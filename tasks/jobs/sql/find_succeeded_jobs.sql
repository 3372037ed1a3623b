-- Finds succeeded jobs among the newest jobs, the newest first.
--
-- :compared  int  how many jobs are looked at
-- :most      int  how many at most
-- returns  task_id
SELECT j.task_id
FROM (SELECT task_id FROM execution_job ORDER BY task_id DESC LIMIT %(compared)s) j
CROSS JOIN LATERAL (SELECT FROM task t WHERE t.id = j.task_id AND t.status = 'Success' OFFSET 0) its_task
LIMIT %(most)s
