-- Locks gates whose time limit has passed, in the order of their tasks. Those that an addition holds are left to a
-- later pass: after the limit no addition begins, so they are free soon. They take no place among `most`.
--
-- :most int
-- returns  execution_id; id, status_revision of the task of each
SELECT g.execution_id, t.id, t.status_revision
FROM execution_gate g
JOIN task t ON t.id = g.task_id
WHERE g.closes_at <= now()
ORDER BY t.id
LIMIT %(most)s
FOR NO KEY UPDATE OF t SKIP LOCKED
