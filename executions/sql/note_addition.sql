-- Notes that tasks, or a child, are added to an execution under a key.
--
-- :execution_id bigint  :kind text, tasks or child: each has keys of its own  :key text
-- returns  a row, or none if that was noted before. It waits for a transaction that notes the same at this moment.
INSERT INTO execution_addition (execution_id, kind, key)
VALUES (%(execution_id)s, %(kind)s, %(key)s)
ON CONFLICT (execution_id, kind, key) DO NOTHING
RETURNING id
