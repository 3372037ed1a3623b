-- Stops the tasks of one execution that are not final yet. Locks them in id order, as reports do.
--
-- :execution_id bigint
-- returns  how many were stopped
WITH waiting AS MATERIALIZED (
    SELECT id FROM task
    WHERE execution_id = %(execution_id)s AND status_code < 3
    ORDER BY id
    FOR NO KEY UPDATE
),
stopped AS (
    UPDATE task t
    SET status = 'Stopped', status_code = 3, update_time = now(), end_time = now()
    FROM waiting w
    WHERE t.id = w.id AND t.status_code < 3
    RETURNING t.id
)
SELECT count(*) FROM stopped
