-- Reads a row for each :slot of the last :span, in the order of time: the most that waited, and by how much the counters
-- have grown since the slot with a sample before. The primary key serves it: at most 17,280 rows for a day.
--
-- :span interval  :slot interval
-- returns  begin of the slot, backlog, seconds since the sample before, changes (refreshed, failed, recovered),
--          latencies then and now, each as JSON; only the begin of a slot without a sample, and of the first with one
WITH sampled AS (
    SELECT
        date_bin(%(slot)s::interval, at, timestamptz '2000-01-01 00:00Z') AS begins,
        max(at) AS at,
        max(backlog) AS backlog,
        max(refreshed) AS refreshed,
        max(failed) AS failed,
        max(recovered) AS recovered,
        (array_agg(latency ORDER BY at DESC))[1] AS latency
    FROM service_sample
    WHERE at >= date_bin(%(slot)s::interval, now() - %(span)s::interval - %(slot)s::interval, timestamptz '2000-01-01 00:00Z')
    GROUP BY begins
),
grown AS (
    SELECT
        begins,
        backlog,
        extract(EPOCH FROM at - lag(at) OVER earlier)::float AS seconds,
        ARRAY[
            refreshed - lag(refreshed) OVER earlier, failed - lag(failed) OVER earlier, recovered - lag(recovered) OVER earlier
        ] AS changes,
        ARRAY[lag(latency) OVER earlier, latency]::text[] AS latencies
    FROM sampled
    WINDOW earlier AS (ORDER BY begins)
)
SELECT slot.begins, g.backlog, g.seconds, g.changes, g.latencies
FROM generate_series(
    date_bin(%(slot)s::interval, now() - %(span)s::interval, timestamptz '2000-01-01 00:00Z'),
    (SELECT max(begins) FROM sampled),
    %(slot)s::interval
) AS slot (begins)
LEFT JOIN grown g ON g.begins = slot.begins
ORDER BY slot.begins
