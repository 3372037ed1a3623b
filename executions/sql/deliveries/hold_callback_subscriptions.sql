-- Locks the subscriptions of callbacks against their deletion, until the end of the transaction. It delays nothing else.
--
-- :handlers text[]
-- returns  the handler of each
SELECT handler
FROM execution_subscription
WHERE kind = 'callback' AND handler = ANY(%(handlers)s::text[])
ORDER BY id
FOR KEY SHARE
