-- Finds the executions of which a task changed between two moments, or has no time of its last change. One page.
--
-- :after_id bigint         the last id of the page before; 0: none
-- :since    timestamptz    :margin interval   from so long before that moment on
-- :before   timestamptz    (ready: changes before it have had time to be refreshed)
-- :most     int            how many at most
-- returns  execution_id, in order
--
-- Harbor has no index on update_time, so this reads the table `task` once, in its order. A page by the time, as
-- ../changed_since.sql has it, would read it once for each page. MATERIALIZED keeps the planner from reading the rows
-- in the order of the index on execution_id, which costs a page of the table for each row.
-- Harbor clears the time of a task when it writes its attributes.
WITH changed AS MATERIALIZED (
    SELECT execution_id
    FROM task
    WHERE
        execution_id > %(after_id)s
        AND (
            update_time IS NULL
            OR update_time >= (%(since)s::timestamptz - %(margin)s::interval) AT TIME ZONE 'UTC'
            AND update_time < %(before)s::timestamptz AT TIME ZONE 'UTC'
        )
)
SELECT DISTINCT execution_id FROM changed ORDER BY execution_id LIMIT %(most)s
