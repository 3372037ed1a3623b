-- Reads one page of executions in id order, and finds those without an end of which no task has moved for a
-- long time.
--
-- :after_id bigint  the last id of the page before; 0: none
-- :page int         how many executions to read
-- :age interval     for how long no task has moved
-- returns  one row: looked_at; last_id; refreshable bigint[]: those whose tasks are all final, so that a refresh ends
--          them; unfinished bigint[]: those with an unfinished task, or without tasks
--
-- Only the tasks of executions that began so long ago and have no end are read: each by the index task_rollup,
-- and its row for the update_time. Executions in quarantine are left out, because they are not refreshed and
-- are named there. An index of the unfinished executions would be cheaper here, and would be written by every
-- refresh.
WITH page AS MATERIALIZED (
    SELECT id, start_time, end_time
    FROM execution
    WHERE id > %(after_id)s
    ORDER BY id
    LIMIT %(page)s
),
dangling AS MATERIALIZED (
    SELECT p.id, t.tasks > 0 AND t.unfinished = 0 AS is_refreshable
    FROM page p
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks, count(*) FILTER (WHERE status_code < 3) AS unfinished, max(update_time) AS
        moved_at FROM task WHERE execution_id = p.id
    ) AS t
    WHERE
        p.end_time IS NULL
        AND p.start_time < now() - %(age)s::interval
        AND coalesce(t.moved_at, p.start_time) < now() - %(age)s::interval
        AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = p.id)
)
SELECT
    (SELECT count(*) FROM page),
    (SELECT max(id) FROM page),
    coalesce(array_agg(id ORDER BY id) FILTER (WHERE is_refreshable), '{}'),
    coalesce(array_agg(id ORDER BY id) FILTER (WHERE NOT is_refreshable), '{}')
FROM dangling
