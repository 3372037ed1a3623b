-- K4: executions that left a final status more often than their tasks ran again.
--
-- :at_most int  NULL: all of them
-- returns  execution_id, what
--
-- Each re-opening needs a newer revision of a task, and each newer revision adds one to its run_count.
-- Several re-runs may share one re-opening, so this is a bound and not an equality.
WITH reopened AS (
    SELECT execution_id, count(*) AS times
    FROM execution_status_change
    WHERE from_status IN ('Stopped', 'Error', 'Success') AND to_status <> from_status
    GROUP BY execution_id
),
judged AS (
    SELECT
        o.execution_id,
        o.times,
        (SELECT coalesce(sum(t.run_count), 0) FROM task t WHERE t.execution_id = o.execution_id) AS reruns
    FROM reopened o
)
SELECT execution_id, format('left a final status %%s times, but its tasks ran again %%s times', times, reruns)
FROM judged
WHERE times > reruns
ORDER BY execution_id
LIMIT %(at_most)s
