-- Sets the final status of executions that have no tasks, and writes their history.
--
-- :execution_ids bigint[]  :status text  :message text   (the caller holds the rows' locks and has checked the rows)
-- returns  whether a change is to be told: a subscription is enabled
WITH stored AS MATERIALIZED (
    SELECT id, status FROM execution WHERE id = ANY(%(execution_ids)s::bigint[])
),
changed AS (
    UPDATE execution e
    SET
        status = %(status)s,
        status_message = %(message)s,
        end_time = now(),
        revision = e.revision + 1,
        update_time = now()
    FROM stored s
    WHERE e.id = s.id
    RETURNING e.id, e.revision, s.status AS from_status, e.status AS to_status
)
INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told)
SELECT
    id, revision, from_status, to_status, now(),
    NOT EXISTS (SELECT FROM execution_subscription WHERE enabled AND missing_since IS NULL)
FROM changed
RETURNING NOT told
