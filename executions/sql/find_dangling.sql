-- Reads one page of executions in id order, and finds those without an end of which no task has moved for a
-- long time.
--
-- :after_id bigint  the last id of the page before; 0: none
-- :page int         how many executions to read
-- :age interval     for how long no task has moved
-- returns  one row: looked_at, last_id, ids bigint[]
--
-- Executions in quarantine are left out, because they are not refreshed.
WITH page AS MATERIALIZED (
    SELECT id, start_time, end_time
    FROM execution
    WHERE id > %(after_id)s
    ORDER BY id
    LIMIT %(page)s
),
dangling AS MATERIALIZED (
    SELECT p.id
    FROM page p
    CROSS JOIN LATERAL (
        SELECT bool_or(update_time >= now() - %(age)s::interval) AS has_moved FROM task WHERE execution_id = p.id
    ) AS t
    WHERE
        p.end_time IS NULL
        AND p.start_time < now() - %(age)s::interval
        AND t.has_moved IS NOT TRUE
        AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = p.id)
)
SELECT
    (SELECT count(*) FROM page),
    (SELECT max(id) FROM page),
    (SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM dangling)
