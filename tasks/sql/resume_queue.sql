-- Resumes a queue.
--
-- :queue   text  its name in the broker
-- returns  how long it was paused; no row if it was not paused
DELETE FROM execution_pause
WHERE queue = %(queue)s
RETURNING now() - at
