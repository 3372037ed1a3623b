-- Few rows that are updated all the time: with room on their pages an update adds nothing to the index, and the next
-- one cleans up after it.
--
-- A migration reads this file: an edit needs a migration.
ALTER TABLE execution_counter
SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)
