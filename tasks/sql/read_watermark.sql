-- Reads where a pass of reconcile begins, whether its times can be trusted, and the two moments that limit the pass.
--
-- :grace interval   how long a change may take to reach its execution in the ordinary way
-- returns  since     every change before it is settled; the beginning of time if there is no watermark
--          rescan_reason  NULL, or why earlier times cannot be trusted: then every execution must be compared
--          now, timeline  to be remembered with the watermark if it moves; a standby, for a dry run, has no timeline
--          ready     changes before it have had that time; look at them
--          settled   no open transaction can commit a change from before it, so the watermark may move to it; NULL
--                    if the start of a transaction is unknown: it is prepared, or its session has track_activities off
--
-- A server that was promoted or restored is on another WAL timeline, and its clock may be behind the clock that set
-- the watermark. Then later changes may have times before the watermark.
-- A task's update_time is the start of its transaction, so an open transaction may still commit a change as old as its
-- start. That limits how far the watermark moves, but not which changes are read.
WITH server AS (
    SELECT
        now() AS now,
        CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
        now() - %(grace)s::interval AS ready
),
others AS (
    SELECT min(xact_start) AS oldest, coalesce(bool_and(state <> 'disabled'), TRUE) AS all_known
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend' AND state <> 'idle'
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
    s.timeline,
    s.ready,
    CASE
        WHEN NOT EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database()) AND o.all_known
        THEN least(s.ready, o.oldest)
    END AS settled
FROM server s
CROSS JOIN others o
LEFT JOIN execution_watermark w ON w.id = 1
