-- Finds executions by status among the newest, the newest first. Harbor has no index on the status of a task.
--
-- :status    text
-- :task_statuses  text[]  without a meaning here
-- :compared  int   how many of the newest executions are compared with the status one by one
-- :most      int   how many at most
-- returns  id
SELECT e.id
FROM execution e
WHERE
    e.id > coalesce((SELECT id FROM execution ORDER BY id DESC OFFSET %(compared)s LIMIT 1), 0)
    AND e.status = %(status)s
ORDER BY e.id DESC
LIMIT %(most)s
