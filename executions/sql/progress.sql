-- Counts the tasks of an execution by status, and measures how fast they end, from the index task_rollup alone.
-- The gate of an open execution does not count, nor does its end: it stands for tasks that may come.
--
-- :execution_id bigint
-- :long  interval     which ends are recent
-- :most  int          how many recent ends are looked at, the latest
-- :now   timestamptz  the moment; NULL: now
-- returns  status of the execution, status of tasks, how many; then the same in each row: how many ends are recent,
--          seconds from the start of the execution to their median and to the last, seconds from the first to the last,
--          the stride, the median of the seconds that a stride took, and whether the execution is open.
--          One row for each status of tasks, one with NULL if it has none, no row if there is no such execution
--
-- A stride is from one end to another, so many ends later. It is a multiple of the jobs that run together, because those
-- may end together; and at least an eighth of the ends, because reports that come together have one moment. A time in
-- which nothing ended is in few of the strides, and does not move their median.
--
-- If no task is left, the ends are not read.
WITH moment AS MATERIALIZED (
    SELECT coalesce(%(now)s::timestamptz, now()) AS now
),
gate AS MATERIALIZED (
    SELECT t.status, t.status_code, t.end_time
    FROM execution_gate g
    JOIN task t ON t.id = g.task_id
    WHERE g.execution_id = %(execution_id)s
),
counted AS MATERIALIZED (
    SELECT c.status, c.status_code, c.count - CASE WHEN g.status IS NULL THEN 0 ELSE 1 END AS count
    FROM (
        SELECT status, status_code, count(*) AS count
        FROM task
        WHERE execution_id = %(execution_id)s
        GROUP BY status, status_code
    ) c
    LEFT JOIN gate g ON g.status = c.status
    WHERE c.count > 1 OR g.status IS NULL
),
recent AS MATERIALIZED (
    SELECT end_time
    FROM task
    WHERE
        execution_id = %(execution_id)s
        AND status_code = 3
        AND end_time IS DISTINCT FROM (SELECT end_time FROM gate)
        AND end_time > (SELECT now FROM moment) - %(long)s::interval
        AND (SELECT coalesce(bool_or(status_code < 3), FALSE) FROM counted)
    ORDER BY end_time DESC
    LIMIT %(most)s
),
together AS (
    SELECT greatest(1, sum(count) FILTER (WHERE status_code = 2))::int AS jobs FROM counted
),
width AS MATERIALIZED (
    SELECT jobs * ceil(greatest(1, (SELECT count(*) FROM recent) / 8) / jobs::float8)::int AS width FROM together
),
strides AS (
    SELECT r.end_time - lag(r.end_time, w.width) OVER (ORDER BY r.end_time) AS took
    FROM recent r
    CROSS JOIN width w
),
measured AS (
    SELECT
        count(*) AS ends,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY r.end_time - e.start_time) AS middle,
        max(r.end_time - e.start_time) AS last,
        coalesce(max(r.end_time) - min(r.end_time), interval '0') AS span
    FROM recent r
    CROSS JOIN (SELECT start_time FROM execution WHERE id = %(execution_id)s) e
)
SELECT
    coalesce(e.status, ''),
    c.status,
    c.count,
    m.ends,
    extract(epoch FROM m.middle)::float8,
    extract(epoch FROM m.last)::float8,
    extract(epoch FROM m.span)::float8,
    w.width,
    (SELECT extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY took)) FROM strides)::float8,
    coalesce((SELECT status_code < 3 FROM gate), FALSE)
FROM execution e
CROSS JOIN measured m
CROSS JOIN width w
LEFT JOIN counted c ON TRUE
WHERE e.id = %(execution_id)s
