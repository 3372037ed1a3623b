-- K4 on Harbor's tables: executions that our refreshes made leave a final status more often than their tasks explain.
--
-- :at_most int  NULL: all of them
-- returns  execution_id, what
--
-- As ../check_reopenings.sql; but a core may add tasks to an execution that has ended, and each explains one more. The
-- tasks of an execution that Harbor has deleted explain nothing, so such an execution is left out.
WITH reopened AS (
    SELECT execution_id, count(*) AS times
    FROM execution_status_change
    WHERE from_status IN ('Stopped', 'Error', 'Success') AND to_status = 'Running'
    GROUP BY execution_id
),
judged AS (
    SELECT
        o.execution_id,
        o.times,
        (
            SELECT coalesce(sum(1 + coalesce(t.run_count, 0)), 0) FROM task t WHERE t.execution_id = o.execution_id
        ) AS reruns
    FROM reopened o
    JOIN execution e ON e.id = o.execution_id
)
SELECT execution_id, format('left a final status %%s times, but its tasks ran again %%s times', times, reruns)
FROM judged
WHERE times > reruns
ORDER BY execution_id
LIMIT %(at_most)s
