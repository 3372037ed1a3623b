-- Asks whether refreshing is paused. A server that takes no writes, such as a standby, refuses the lock: it is down.
--
-- :queue text  that of refreshes
-- returns  the queue, if it is paused
SELECT queue FROM execution_pause WHERE queue = %(queue)s FOR KEY SHARE
