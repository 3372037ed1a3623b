-- The second of the original's four statements: counts the tasks of an execution by status.
--
-- :execution_id bigint
-- returns  status, count
SELECT status, count(*) FROM task WHERE execution_id = %(execution_id)s GROUP BY status
