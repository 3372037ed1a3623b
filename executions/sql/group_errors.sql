-- Groups the newest tasks that ended with an error by message, by vendor and by the hour of their end.
--
-- :execution_id  bigint       of one execution; NULL: of all
-- :since         timestamptz  that ended since then; NULL: at any time
-- :compared      int          how many tasks are read at most, those of the newest executions first
-- :any_status    bool         whether tasks of any status are read: Harbor has no index on it
-- :most          int          how many groups of each kind
-- returns  kind (message, vendor, hour), the message (its first 200 characters), vendor or hour; how many; the last end;
--          the newest of these tasks and its execution; how many tasks were read in all
--
-- In Harbor's rows a NULL is an empty message, and an end in the year 1 none.
WITH newest AS MATERIALIZED (
    SELECT
        id,
        execution_id,
        vendor_type,
        status,
        left(coalesce(status_message, ''), 200) AS message,
        CASE WHEN end_time > '0002-01-01' THEN end_time::timestamptz END AS end_time
    FROM task
    WHERE
        (%(any_status)s OR (status = 'Error' AND status <> 'Success'))
        AND (%(execution_id)s::bigint IS NULL OR execution_id = %(execution_id)s::bigint)
    ORDER BY execution_id DESC, id DESC
    LIMIT %(compared)s
),
grouped AS (
    SELECT
        CASE
            WHEN grouping(message) = 0 THEN 'message' WHEN grouping(vendor_type) = 0 THEN 'vendor' ELSE 'hour'
        END AS kind,
        message,
        vendor_type,
        date_trunc('hour', end_time, 'UTC') AS hour,
        count(*) AS count,
        max(end_time) AS last_end,
        max(id) AS task_id,
        (array_agg(execution_id ORDER BY id DESC))[1] AS execution_id
    FROM newest
    WHERE status = 'Error' AND (%(since)s::timestamptz IS NULL OR end_time >= %(since)s::timestamptz)
    GROUP BY GROUPING SETS ((message), (vendor_type), (date_trunc('hour', end_time, 'UTC')))
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY kind ORDER BY CASE WHEN kind = 'hour' THEN hour END DESC, count DESC, message, vendor_type
        ) AS rank
    FROM grouped
)
SELECT
    kind, message, vendor_type, hour, count, last_end, task_id, execution_id, (SELECT count(*) FROM newest) AS compared
FROM ranked
WHERE rank <= %(most)s AND (kind <> 'hour' OR hour IS NOT NULL)
ORDER BY kind, rank
