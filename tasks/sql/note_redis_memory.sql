-- Notes what was seen of the memory of Redis.
--
-- :epoch bigint  :sequence bigint
--
-- In the same epoch the sequence only grows: passes and publishers note it in any order.
UPDATE execution_redis_memory
SET
    sequence = CASE WHEN epoch = %(epoch)s THEN greatest(sequence, %(sequence)s) ELSE %(sequence)s END,
    epoch = %(epoch)s
WHERE id = 1 AND (epoch <> %(epoch)s OR sequence < %(sequence)s)
