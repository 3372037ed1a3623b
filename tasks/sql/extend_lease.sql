-- Extends the lease of reconcile, expired or not, if no other pass has taken it over.
--
-- :holder text  :lease interval
-- returns  one row, or none if the lease is not the holder's any more
UPDATE execution_watermark
SET held_until = clock_timestamp() + %(lease)s::interval
WHERE id = 1 AND holder = %(holder)s
RETURNING held_until
