-- Reads the samples of the last :span, one row for each :slot: the most that waited, and the counters at
-- the end of the slot. The primary key serves it: at most 17,280 rows for a day.
--
-- :span interval  :slot interval
-- returns  begin of the slot, time of its last sample, backlog, refreshed, failed, recovered, latency; NULL for a
--          slot without a sample; in the order of time, from the slot before the span to the last with a sample
WITH sampled AS (
    SELECT
        date_bin(%(slot)s::interval, at, timestamptz '2000-01-01 00:00Z') AS begins,
        max(at) AS last_at,
        max(backlog) AS backlog,
        max(refreshed) AS refreshed,
        max(failed) AS failed,
        max(recovered) AS recovered,
        (array_agg(latency ORDER BY at DESC))[1] AS latency
    FROM service_sample
    WHERE at >= date_bin(%(slot)s::interval, now() - %(span)s::interval - %(slot)s::interval, timestamptz '2000-01-01 00:00Z')
        AND at <= now()
    GROUP BY begins
)
SELECT begins, last_at, backlog, refreshed, failed, recovered, latency
FROM generate_series(
    date_bin(%(slot)s::interval, now() - %(span)s::interval - %(slot)s::interval, timestamptz '2000-01-01 00:00Z'),
    (SELECT max(begins) FROM sampled),
    %(slot)s::interval
) slot (begins)
LEFT JOIN sampled USING (begins)
ORDER BY begins
