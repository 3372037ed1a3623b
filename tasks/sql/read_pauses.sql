-- Reads the paused queues, the oldest pause first.
--
-- returns  queue, at, by, reason
--          lasts   how long it has been paused
SELECT queue, at, by, reason, now() - at AS lasts
FROM execution_pause
ORDER BY at, queue
