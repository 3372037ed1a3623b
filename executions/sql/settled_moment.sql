-- A moment before which every change is committed and has had time to be refreshed.
--
-- :grace interval   how long a change may take to reach its execution in the ordinary way
-- returns  the moment
--
-- A task's update_time is the start of its transaction, so a transaction still open may yet bring a change
-- as old as its own start: the moment stays before the oldest of them.
SELECT least(
    now() - %(grace)s::interval,
    (
        SELECT min(xact_start) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND backend_type = 'client backend' AND state <> 'idle'
    )
)
