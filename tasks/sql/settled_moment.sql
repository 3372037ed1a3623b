-- Reads the two moments that limit a pass of reconcile.
--
-- :grace interval   how long a change may take to reach its execution in the ordinary way
-- returns  ready    changes before it have had that time; look at them
--          settled  no open transaction can commit a change from before it, so the watermark may move to it; NULL
--                   if the start of a transaction is unknown: it is prepared, or its session has track_activities
--                   off
--
-- A task's update_time is the start of its transaction, so an open transaction may still commit a change as old as its
-- start. That limits how far the watermark moves, but not which changes are read.
SELECT
    now() - %(grace)s::interval AS ready,
    CASE
        WHEN NOT EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database()) AND all_known
        THEN least(now() - %(grace)s::interval, oldest)
    END AS settled
FROM (
    SELECT min(xact_start) AS oldest, coalesce(bool_and(state <> 'disabled'), TRUE) AS all_known
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend' AND state <> 'idle'
) others
