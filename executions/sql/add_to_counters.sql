-- Adds to counters, in the transaction of the caller.
--
-- :metrics text[]  :series text[]  :amounts bigint[]
SELECT add_to_execution_counters(%(metrics)s::text[], %(series)s::text[], %(amounts)s::bigint[])
