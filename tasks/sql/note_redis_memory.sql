-- Notes the memory of Redis that was read.
--
-- :epoch bigint  :sequence bigint
--
-- In one epoch the sequence only grows, because passes and publishers note it in any order.
UPDATE execution_redis_memory
SET
    sequence = CASE WHEN epoch = %(epoch)s THEN greatest(sequence, %(sequence)s) ELSE %(sequence)s END,
    epoch = %(epoch)s
WHERE id = 1 AND (epoch <> %(epoch)s OR sequence < %(sequence)s)
