-- Releases a lease, if it is still the holder's.
--
-- :work text  :holder text
UPDATE execution_lease SET holder = NULL, held_until = NULL WHERE name = %(work)s AND holder = %(holder)s
