-- Takes the lock of the outbox until the end of the transaction, without waiting for it.
--
-- returns  whether it was free
--
-- A lock of the transaction and not of the session, because behind PgBouncer clients share sessions.
SELECT pg_try_advisory_xact_lock(hashtext('execution_status_change.told'))
