-- Extends a lease, expired or not, if no other process has taken it over. The row stays locked until the
-- transaction ends, so that a write in the same transaction is fenced by the lease.
--
-- :work text  :holder text  :lease interval
-- returns  one row, or none if the lease is not the holder's any more
UPDATE execution_lease
SET held_until = clock_timestamp() + %(lease)s::interval
WHERE name = %(work)s AND holder = %(holder)s
RETURNING held_until
