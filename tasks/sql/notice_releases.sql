-- Moves the watermark back to the oldest change that a release from quarantine has named, and deletes the rows
-- of those releases. A release that commits later keeps its row for the next pass.
--
-- In the transaction in which the lease of reconcile was extended.
WITH noticed AS (DELETE FROM execution_release RETURNING changed_at)
UPDATE execution_watermark
SET settled_before = least(settled_before, (SELECT min(changed_at) FROM noticed))
WHERE id = 1
