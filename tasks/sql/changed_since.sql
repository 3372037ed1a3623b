-- Reads a page of the executions whose tasks changed, in the order of the change.
--
-- :after_time timestamptz  :after_id bigint  (the last row of the page before)
-- :before timestamptz      (ready: changes before it have had time to be refreshed)
-- :page int                rows of the table `task` to look at
-- returns  execution_ids (distinct), last_time, last_id, looked_at
WITH page AS (
    SELECT execution_id, update_time, id
    FROM task
    WHERE (update_time, id) > (%(after_time)s::timestamptz, %(after_id)s::bigint)
        AND update_time < %(before)s::timestamptz
    ORDER BY update_time, id
    LIMIT %(page)s
)
SELECT
    coalesce(array_agg(DISTINCT execution_id), '{}'),
    max(update_time),
    (SELECT id FROM page ORDER BY update_time DESC, id DESC LIMIT 1),
    count(*)
FROM page
