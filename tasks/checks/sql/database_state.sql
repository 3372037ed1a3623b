-- Reads the state of the server and of this session that the checks of PostgreSQL look at.
--
-- returns  one JSON object: is_standby, is_read_only, lock_timeout and idle_timeout (milliseconds, 0 is none), role,
--          database
SELECT to_jsonb(state) FROM (
    SELECT
        pg_is_in_recovery() AS is_standby,
        current_setting('transaction_read_only')::bool AS is_read_only,
        (SELECT setting::bigint FROM pg_settings WHERE name = 'lock_timeout') AS lock_timeout,
        (SELECT setting::bigint FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout') AS idle_timeout,
        current_user::text AS role,
        current_database()::text AS database
) state
