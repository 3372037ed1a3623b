-- Locks the key of an execution, so that it is not deleted before this transaction ends. Refreshes, reports and stops
-- do not wait for it.
--
-- :execution_id bigint
-- returns  vendor_type; no row if there is no such execution
SELECT vendor_type FROM execution WHERE id = %(execution_id)s FOR KEY SHARE
