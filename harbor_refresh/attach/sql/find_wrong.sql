-- Finds the wrong ones among the next executions: their status or end is not what the words of their tasks say.
--
-- :after   bigint  the last id that was looked at
-- :page    int     how many executions to look at
-- :dangling interval  how long an execution runs before Harbor gives it up
-- returns  one row for each wrong execution, in id order: id, vendor_type, stored status and end, true status and end,
--          all but the id as text, and whether Harbor has given it up; before them a row without a vendor: the last id
--          of the page (NULL: there are no more), how many were looked at, and how many of these have not ended
--
-- Harbor gives up what is Running for a week without a task that is Running: it sets a final status, whatever the waiting
-- tasks say, and would set it again each day.
--
-- It needs nothing of ours, so it works before the first migration. Therefore it repeats the rule of
-- execution_rollup(), and a test compares the two. Times are text, because a driver cannot read each time that
-- PostgreSQL can hold.
WITH page AS MATERIALIZED (
    SELECT id, vendor_type, status, end_time, start_time FROM execution WHERE id > %(after)s ORDER BY id LIMIT %(page)s
),
words AS (
    SELECT
        t.execution_id,
        bool_or(t.status IN ('Pending', 'Scheduled', 'Running')) AS is_unfinished,
        bool_or(t.status = 'Running') AS is_running,
        bool_or(t.status = 'Error') AS has_error,
        bool_or(t.status = 'Stopped') AS has_stop,
        bool_or(t.status = 'Success') AS has_success,
        max(t.end_time) AS last_end
    FROM task t
    WHERE t.execution_id = ANY(ARRAY(SELECT id FROM page))
    GROUP BY t.execution_id
),
rolled_up AS (
    SELECT
        execution_id,
        is_running,
        CASE WHEN is_unfinished THEN 'Running' WHEN has_error THEN 'Error' WHEN has_stop THEN 'Stopped' ELSE 'Success' END
            AS status,
        CASE WHEN NOT coalesce(is_unfinished, FALSE) THEN last_end END AS end_time
    FROM words
    WHERE is_unfinished OR has_error OR has_stop OR has_success
)
SELECT
    max(id), NULL, count(*)::text,
    count(*) FILTER (WHERE status IN ('Pending', 'Scheduled', 'Running'))::text, NULL, NULL, FALSE
FROM page
UNION ALL
(
    SELECT
        p.id, p.vendor_type, p.status, p.end_time::text, r.status, r.end_time::text,
        (
            r.status = 'Running'
            AND NOT r.is_running
            AND p.status IN ('Error', 'Stopped', 'Success')
            AND p.start_time < (now() - %(dangling)s::interval) AT TIME ZONE 'UTC'
        ) IS TRUE
    FROM page p
    JOIN rolled_up r ON r.execution_id = p.id
    WHERE (p.status, p.end_time) IS DISTINCT FROM (r.status, r.end_time)
    ORDER BY p.id
)
