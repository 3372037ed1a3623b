-- Releases the lease of reconcile, if it is still the holder's.
--
-- :holder text
UPDATE execution_watermark SET holder = NULL, held_until = NULL WHERE id = 1 AND holder = %(holder)s
