-- Reads the state of the server and of this session that the checks of PostgreSQL look at.
--
-- returns  is_standby, is_read_only, lock_timeout and idle_timeout (milliseconds, 0 is none), role, database
SELECT
    pg_is_in_recovery(),
    current_setting('transaction_read_only')::bool,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'lock_timeout'),
    (SELECT setting::bigint FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'),
    current_user::text,
    current_database()::text
