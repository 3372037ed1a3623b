-- Notes that tasks are added to an execution under a key.
--
-- :execution_id bigint  :key text
-- returns  a row, or none if that was noted before. It waits for a transaction that notes the same at this moment.
INSERT INTO execution_addition (execution_id, key)
VALUES (%(execution_id)s, %(key)s)
ON CONFLICT (execution_id, key) DO NOTHING
RETURNING id
