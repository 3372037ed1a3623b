-- Moves the watermark back to the oldest change that a release from quarantine has named, and deletes the rows
-- of those releases. A release that commits later keeps its row for the next pass. A missing watermark is created; it
-- says that nothing is settled yet, by the clock of this server.
--
-- In the transaction in which the lease of reconcile was extended.
WITH noticed AS (DELETE FROM execution_release RETURNING changed_at)
INSERT INTO execution_watermark AS known (id, settled_before, last_pass_at, timeline)
VALUES (1, '0001-01-01Z', now(), left(pg_walfile_name(pg_current_wal_lsn()), 8))
ON CONFLICT (id) DO UPDATE
SET settled_before = least(known.settled_before, (SELECT min(changed_at) FROM noticed))
