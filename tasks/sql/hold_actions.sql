-- Keeps other actions on many from beginning until the end of this transaction: of callers at once, each counts those
-- before it.
SELECT pg_advisory_xact_lock(hashtext('harbor_refresh bulk'))
