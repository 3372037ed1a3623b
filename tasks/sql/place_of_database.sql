-- Reads where this database is: the identifier of its cluster, and its own number in there.
--
-- returns  one row: the place
--
-- A dump that is loaded elsewhere, a clone and a database made from a template are in another place than their
-- original. A base backup, a snapshot of a disk and a standby are not: to PostgreSQL they are the same database.
SELECT c.system_identifier::text || '/' || d.oid::text
FROM pg_database d, pg_control_system() c
WHERE d.datname = current_database()
