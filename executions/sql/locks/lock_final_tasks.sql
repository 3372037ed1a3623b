-- Locks the tasks of executions in id order, those that are final and not locked by another transaction.
--
-- :ids     bigint[]  executions this transaction has locked
-- returns  ids bigint[]: the executions of which every task is final and locked now; tasks: how many these have
--
-- An execution with a change that is not told is left for a later sweep.
WITH locked AS MATERIALIZED (
    SELECT id, execution_id
    FROM task
    WHERE execution_id = ANY(%(ids)s::bigint[]) AND status_code = 3
    ORDER BY id
    FOR UPDATE SKIP LOCKED
),
held AS MATERIALIZED (
    SELECT execution_id, count(*) AS tasks FROM locked GROUP BY execution_id
)
SELECT coalesce(array_agg(given.id ORDER BY given.id), '{}'), coalesce(sum(h.tasks), 0)::bigint
FROM unnest(%(ids)s::bigint[]) AS given (id)
LEFT JOIN held h ON h.execution_id = given.id
WHERE
    coalesce(h.tasks, 0) = (SELECT count(*) FROM task WHERE execution_id = given.id)
    AND NOT EXISTS (SELECT FROM execution_status_change c WHERE c.execution_id = given.id AND NOT c.told)
