-- Creates the watermark's row if it is missing. It says that nothing is settled yet, by the clock of this
-- server.
INSERT INTO execution_watermark (id, settled_before, last_pass_at, timeline)
VALUES (1, '0001-01-01Z', now(), left(pg_walfile_name(pg_current_wal_lsn()), 8))
ON CONFLICT DO NOTHING
