-- K1: executions whose stored status or end_time does not follow from their tasks, over the whole table.
--
-- :quarantined bool  list those in quarantine (known, and waiting), or those that are not
-- :at_most     int   NULL: all of them
-- :given_up    interval  leave out executions that began so long ago and were ended although no task runs, which a Harbor
--                    does (find_drift.sql); NULL: none
-- returns  execution_id, what (the stored pair and the count of tasks by status), in id order
--
-- This does not repeat the function execution_rollup. The function derives a status from the codes of the tasks; this
-- statement derives from the stored status which statuses the tasks must have, so a mistake in one is not repeated
-- in the other. It asks the function as well, and lists every execution that fails either check. On the tables of a
-- Harbor, a task may have a status that is none, and counts for nothing.
WITH tally AS (
    SELECT
        execution_id,
        count(*) FILTER (WHERE status IN ('Pending', 'Scheduled', 'Running')) AS unfinished,
        count(*) FILTER (WHERE status = 'Running') AS running,
        count(*) FILTER (WHERE status = 'Error') AS errors,
        count(*) FILTER (WHERE status = 'Stopped') AS stops,
        count(*) FILTER (WHERE status = 'Success') AS successes,
        max(end_time) AS last_end
    FROM task
    GROUP BY execution_id
),
stored AS (
    SELECT id, status, start_time, end_time
    FROM execution e
    WHERE EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id) = %(quarantined)s
)
SELECT
    e.id,
    format(
        'is %%s with end %%s; tasks: %%s unfinished, %%s Error, %%s Stopped, %%s Success, last end %%s; rollup: %%s with end %%s',
        coalesce(e.status, 'nothing'), coalesce(e.end_time::text, 'none'),
        t.unfinished, t.errors, t.stops, t.successes, coalesce(t.last_end::text, 'none'),
        r.status, coalesce(r.end_time::text, 'none')
    )
FROM stored e
JOIN tally t ON t.execution_id = e.id
LEFT JOIN LATERAL execution_rollup(ARRAY[e.id::bigint]) r ON TRUE
WHERE
    t.unfinished + t.errors + t.stops + t.successes > 0
    AND (
        e.status IN ('Error', 'Stopped', 'Success')
        AND t.unfinished > 0
        AND t.running = 0
        AND e.start_time < (now() - %(given_up)s::interval) AT TIME ZONE 'UTC'
    ) IS NOT TRUE
    AND (
        CASE e.status
            WHEN 'Running' THEN t.unfinished > 0 AND e.end_time IS NULL
            WHEN 'Error' THEN t.unfinished = 0 AND t.errors > 0 AND e.end_time IS NOT DISTINCT FROM t.last_end
            WHEN 'Stopped' THEN
                t.unfinished + t.errors = 0 AND t.stops > 0 AND e.end_time IS NOT DISTINCT FROM t.last_end
            WHEN 'Success' THEN
                t.unfinished + t.errors + t.stops = 0 AND e.end_time IS NOT DISTINCT FROM t.last_end
            ELSE FALSE
        END IS NOT TRUE
        OR (e.status, e.end_time) IS DISTINCT FROM (r.status, r.end_time)
    )
ORDER BY e.id
LIMIT %(at_most)s
