-- The function that adds to the counters, for the statements that change what is counted: so a change and its count
-- commit together, or neither does.
--
-- of_metrics text[]  of_series text[]  given bigint[]   what to add to each; each series at most once
--
-- Many transactions add to the same counter at once, and none may wait for another. So each counter is spread over
-- shards, and a transaction first takes a shard for itself, by an advisory lock that ends with it. It begins with the
-- shard of its backend's number and tries the next ones while others have them. If all 32 are taken, it uses a shard
-- that only this backend has. No transaction waits, so none can deadlock. PostgreSQL keeps the plan of this function,
-- so a call costs less than the same INSERT as a part of each statement.
--
-- The lock of a shard is released after the commit is visible. The next holder may have read an older snapshot, but
-- DO UPDATE adds to the row as it was committed.
--
-- A migration reads this file: an edit needs a migration.
CREATE FUNCTION add_to_execution_counters(of_metrics text[], of_series text[], given bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    space CONSTANT int := 'execution_counter'::regclass::oid::int;
    shards CONSTANT int := 32;
    mine int;
BEGIN
    FOR step IN 0 .. shards - 1 LOOP
        mine := (pg_backend_pid() + step) % shards;
        EXIT WHEN pg_try_advisory_xact_lock(space, mine);
        mine := shards + pg_backend_pid();
    END LOOP;
    INSERT INTO execution_counter AS c (metric, series, shard, amount)
    SELECT g.metric, g.series, mine, g.amount
    FROM unnest(of_metrics, of_series, given) AS g (metric, series, amount)
    WHERE g.amount > 0
    ON CONFLICT (metric, series, shard) DO UPDATE SET amount = c.amount + excluded.amount
    -- a counter that is full stands still, because a count must never make the work of its transaction fail
    WHERE c.amount < 200000000000000000;
END
$$
