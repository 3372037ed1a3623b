-- Leaves room on each page of `execution`, so that a refreshed row stays on its page (a heap-only update) and no
-- index is written.
--
-- A migration reads this file: an edit needs a migration.
ALTER TABLE execution SET (fillfactor = 70)
