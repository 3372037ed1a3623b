-- Pauses a queue, unless it is paused already.
--
-- :queue   text  its name in the broker
-- :by      text  the name of the person or token that asked
-- :reason  text
-- returns  its name if it is paused now and was not before; of two callers at once, one gets it
INSERT INTO execution_pause (queue, by, reason)
VALUES (%(queue)s, %(by)s, %(reason)s)
ON CONFLICT DO NOTHING
RETURNING queue
