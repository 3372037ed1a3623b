-- Attached, tasks are Harbor's, and there are no jobs.
--
-- A migration reads this file: an edit needs a migration.
SELECT 1
