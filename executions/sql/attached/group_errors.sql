-- Groups the newest tasks that ended with an error by message, by vendor and by the hour of their end.
--
-- Parameters and result are those of ../group_errors.sql, but :compared is how many tasks are read, whatever their status,
-- because Harbor has no index on it. A NULL is an empty message; an end in the year 1 is none.
WITH read AS MATERIALIZED (
    SELECT id, execution_id, vendor_type, status, status_message, end_time
    FROM task
    WHERE %(execution_id)s::bigint IS NULL OR execution_id = %(execution_id)s::bigint
    ORDER BY id DESC
    LIMIT %(compared)s
),
newest AS MATERIALIZED (
    SELECT
        id,
        execution_id,
        vendor_type,
        left(coalesce(status_message, ''), 200) AS message,
        CASE WHEN end_time > '0002-01-01' THEN end_time AT TIME ZONE 'UTC' END AS end_time
    FROM read
    WHERE status = 'Error'
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
    WHERE %(since)s::timestamptz IS NULL OR end_time >= %(since)s::timestamptz
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
    kind, message, vendor_type, hour, count, last_end, task_id, execution_id, (SELECT count(*) FROM read) AS compared
FROM ranked
WHERE rank <= %(most)s AND (kind <> 'hour' OR hour IS NOT NULL)
ORDER BY kind, rank
