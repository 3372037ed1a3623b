-- Locks all deliveries of a subscription in id order, for their deletion. Dead letters that are sent again are locked in
-- this order as well.
--
-- :subscription bigint
-- returns  how many
WITH locked AS MATERIALIZED (
    SELECT id FROM execution_delivery WHERE subscription_id = %(subscription)s ORDER BY id FOR UPDATE
)
SELECT count(*) FROM locked
