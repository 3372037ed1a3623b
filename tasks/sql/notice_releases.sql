-- Moves the watermark back to the oldest change that a release from quarantine has named, and deletes the rows
-- of those releases. A release that commits later keeps its row for the next pass.
--
-- :holder text
-- returns  one row, or none if the lease is not the holder's any more: then no row is deleted
WITH mine AS MATERIALIZED (
    SELECT id FROM execution_watermark WHERE id = 1 AND holder = %(holder)s FOR NO KEY UPDATE
),
noticed AS (
    DELETE FROM execution_release WHERE EXISTS (SELECT FROM mine) RETURNING changed_at
)
UPDATE execution_watermark w
SET settled_before = least(w.settled_before, (SELECT min(changed_at) FROM noticed))
FROM mine m
WHERE w.id = m.id
RETURNING w.settled_before
