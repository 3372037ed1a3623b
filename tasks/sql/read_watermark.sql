-- Reads where a pass of reconcile begins, and whether its times can be trusted.
--
-- returns  since     every change before it is settled; the beginning of time if there is no watermark
--          rescan_reason  NULL, or why earlier times cannot be trusted: then every execution must be compared
--          now, timeline  to be remembered with the watermark if it moves
--
-- A server that was promoted or restored is on another WAL timeline, and its clock may be behind the clock that set
-- the watermark. Then later changes may have times before the watermark.
WITH server AS (
    SELECT now() AS now, left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline
)
SELECT
    least(coalesce(w.settled_before, '0001-01-01Z'), (SELECT min(changed_at) FROM execution_release)) AS since,
    CASE
        WHEN w.id IS NULL THEN NULL
        WHEN w.last_pass_at IS NULL THEN 'it does not say which server wrote it'
        WHEN w.timeline <> s.timeline THEN
            format('PostgreSQL failed over or was restored (timeline %%s, then %%s)', w.timeline, s.timeline)
        WHEN w.last_pass_at > s.now THEN 'the clock of PostgreSQL went back'
        WHEN w.settled_before > s.now THEN 'it lies in the future'
    END AS rescan_reason,
    s.now,
    s.timeline
FROM server s
LEFT JOIN execution_watermark w ON w.id = 1
