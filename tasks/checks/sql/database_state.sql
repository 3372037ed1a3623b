-- Reads the state of the server and of this transaction that the checks of PostgreSQL look at.
--
-- returns  is_standby, is_read_only, isolation, lock_timeout and idle_timeout (milliseconds, 0 is none), role, database,
--          may_report: whether this role may change tasks, or there is no table of tasks yet
SELECT
    pg_is_in_recovery(),
    current_setting('transaction_read_only')::bool,
    current_setting('transaction_isolation'),
    (SELECT setting::bigint FROM pg_settings WHERE name = 'lock_timeout'),
    (SELECT setting::bigint FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'),
    current_user::text,
    current_database()::text,
    coalesce(has_any_column_privilege(to_regclass('task'), 'UPDATE'), TRUE)
