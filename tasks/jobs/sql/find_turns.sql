-- Finds the first turns of jobs that are started now (turn_functions.sql).
--
-- :queues text[]  :priorities int[]  :tenants text[] (NULL: none)  :names text[]  :keys text[] (NULL: no limit)  of each line
-- returns  the turn, in the order of the lines
SELECT execution_turn(queue, priority, name, key, tenant)
FROM unnest(
    %(queues)s::text[], %(priorities)s::int[], %(tenants)s::text[], %(names)s::text[], %(keys)s::text[]
) WITH ORDINALITY AS g (queue, priority, tenant, name, key, position)
ORDER BY position
