-- Records that a signed message was received, unless it was received before.
--
-- :id      text
-- :at      timestamptz  the timestamp of the message
-- returns  its id if this is the first time; no row if it was received before
--
-- A second message with this id waits until the transaction of the first has ended. If that was rolled back, the
-- second is the first.
INSERT INTO execution_received_message (id, at)
VALUES (%(id)s, greatest(now(), %(at)s::timestamptz))
ON CONFLICT (id) DO NOTHING
RETURNING id
