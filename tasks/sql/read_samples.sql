-- Reads the samples of the last :span, one row for each :slot: the most that waited, and the counters at
-- the end of the slot. The primary key serves it: at most 17,280 rows for a day.
--
-- :span interval  :slot interval
-- returns  begin of the slot, time of its last sample, backlog, refreshed, failed, recovered,
--          latency; in the order of time, beginning with the slot before the span
SELECT
    date_bin(%(slot)s::interval, at, timestamptz '2000-01-01 00:00Z') AS begins,
    max(at),
    max(backlog),
    max(refreshed),
    max(failed),
    max(recovered),
    (array_agg(latency ORDER BY at DESC))[1]
FROM service_sample
WHERE at >= date_bin(%(slot)s::interval, now() - %(span)s::interval - %(slot)s::interval, timestamptz '2000-01-01 00:00Z')
    AND at <= now()
GROUP BY begins
ORDER BY begins
