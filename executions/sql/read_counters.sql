-- Reads every counter: the sum of its shards. The table has some thousand rows at most, whatever it has counted.
--
-- returns  metric, series, amount
SELECT metric, series, sum(amount)::bigint
FROM execution_counter
GROUP BY metric, series
ORDER BY metric, series
