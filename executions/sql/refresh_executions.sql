-- Brings the status and end_time of executions to what their tasks say, and writes the history.
--
-- :ids     bigint[]  executions this transaction has locked (lock_executions)
-- returns  id, revision, from_status, to_status of each one that was changed
--
-- Decides under the lock and writes only what differs. Row and history are one statement: neither is
-- ever there without the other.
WITH stored AS MATERIALIZED (
    SELECT id, status, end_time FROM execution WHERE id = ANY(%(ids)s::bigint[])
),
true_now AS MATERIALIZED (
    SELECT execution_id, status, end_time FROM execution_rollup WHERE execution_id = ANY(%(ids)s::bigint[])
),
changed AS (
    UPDATE execution e
    SET
        status = t.status,
        end_time = t.end_time,
        revision = e.revision + 1,
        update_time = now()
    FROM stored s
    JOIN true_now t ON t.execution_id = s.id
    WHERE e.id = s.id AND (s.status, s.end_time) IS DISTINCT FROM (t.status, t.end_time)
    RETURNING e.id, e.revision, s.status AS from_status, e.status AS to_status
),
history AS (
    INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at)
    SELECT id, revision, from_status, to_status, now() FROM changed
)
SELECT id, revision, from_status, to_status FROM changed
