-- Two moments for reconcile.
--
-- :grace interval   how long a change may take to reach its execution in the ordinary way
-- returns  ready    changes before it have had that time; look at them
--          settled  and before this one no change can still come: the watermark may move to it; NULL if
--                   there is no telling, because a transaction is prepared and its start is not known
--
-- A task's update_time is the start of its transaction, so a transaction still open may yet bring a change
-- as old as its own start. It holds the watermark back, but never the look at what is there.
SELECT
    now() - %(grace)s::interval AS ready,
    CASE
        WHEN NOT EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())
        THEN least(
            now() - %(grace)s::interval,
            (
                SELECT min(xact_start) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND backend_type = 'client backend' AND state <> 'idle'
            )
        )
    END AS settled
