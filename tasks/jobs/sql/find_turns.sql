-- Finds the first turns of jobs that are started now (turn_functions.sql).
--
-- :queues text[]  :priorities int[]  :names text[]  :keys text[] (NULL: no limit)  of each line
-- :tenant text    NULL: none
-- returns  the turn, in the order of the lines
SELECT execution_turn(queue, priority, name, key, %(tenant)s::text)
FROM unnest(%(queues)s::text[], %(priorities)s::int[], %(names)s::text[], %(keys)s::text[]) WITH ORDINALITY
    AS g (queue, priority, name, key, position)
ORDER BY position
