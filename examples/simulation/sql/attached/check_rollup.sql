-- K1 on Harbor's tables: executions whose stored status or end_time does not follow from the words of their tasks.
--
-- :quarantined bool  list those in quarantine (known, and waiting), or those that are not
-- :at_most     int   NULL: all of them
-- returns  execution_id, what (the stored pair and the count of tasks by word), in id order
--
-- From the stored status to the words that the tasks must have, as in ../check_rollup.sql; it asks the rollup as well. An
-- execution that Harbor has given up (find_drift.sql) is right as Harbor left it, and so is one without a known word.
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
    SELECT id, status, end_time, start_time
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
        AND e.start_time < (now() - INTERVAL '168 hours') AT TIME ZONE 'UTC'
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
