-- Makes the gate of an execution. Its limit is a moment of the database's clock.
--
-- :execution_id bigint  :task_id bigint  :seconds float
INSERT INTO execution_gate (execution_id, task_id, closes_at)
VALUES (%(execution_id)s, %(task_id)s, now() + make_interval(secs => %(seconds)s))
