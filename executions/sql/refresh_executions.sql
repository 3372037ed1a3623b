-- Brings the status and end_time of executions to what their tasks say, and writes the history with it.
--
-- :ids     bigint[]  executions this transaction has locked   :count int  how many they are
-- :waited  float     seconds since the refresh began, most of them for locks
-- returns  how many were changed; whether a change is to be told; whether one of the changed has a parent (carry_up)
--
-- A change is told at once (`told`) while no subscription is enabled; a new subscription begins with later changes.
-- The UPDATE finds its rows by `differing` alone: if it named the ids again, the planner would compare each with each.
-- It also counts what it did (counting_refreshes.sql), and how late a status became final after its end time.
WITH differing AS MATERIALIZED (
    SELECT e.id, e.status AS from_status, r.status, r.end_time
    FROM execution e
    JOIN execution_rollup(%(ids)s::bigint[]) r ON r.execution_id = e.id
    WHERE
        e.id = ANY(%(ids)s::bigint[])
        AND (e.status, e.end_time) IS DISTINCT FROM (r.status, r.end_time)
),
changed AS (
    UPDATE execution e
    SET
        status = d.status,
        end_time = d.end_time,
        revision = e.revision + 1,
        update_time = now()
    FROM differing d
    WHERE e.id = d.id
    RETURNING e.id, e.revision, d.from_status, e.status AS to_status
),
history AS (
    INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told)
    SELECT
        id, revision, from_status, to_status, now(),
        NOT EXISTS (SELECT FROM execution_subscription WHERE enabled AND missing_since IS NULL)
    FROM changed
    RETURNING told
),
done AS MATERIALIZED (
    SELECT
        count(*) AS changed,
        coalesce(NOT bool_and(told), FALSE) AS untold,
        EXISTS (SELECT FROM changed c JOIN execution_link l ON l.child_id = c.id) AS nested
    FROM history
)
SELECT d.changed, d.untold, d.nested
FROM done d
CROSS JOIN LATERAL count_execution_refresh(
    d.changed,
    %(count)s - d.changed,
    %(waited)s::float + date_part('epoch', clock_timestamp() - statement_timestamp()),
    (SELECT array_agg(date_part('epoch', clock_timestamp() - end_time)) FROM differing WHERE end_time IS NOT NULL)
)
