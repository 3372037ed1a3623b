-- The second of the original's four statements: how many tasks of an execution have which status.
--
-- :execution_id bigint
-- returns  status, count
SELECT status, count(*) FROM task WHERE execution_id = %(execution_id)s GROUP BY status
