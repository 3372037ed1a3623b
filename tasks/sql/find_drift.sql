-- Finds those of the given executions whose stored status or end_time differs from the rollup of their tasks.
--
-- :ids     bigint[]
-- returns  id, vendor_type, stored_status, true_status, changed_at (the last change of a task), in id
--          order; executions in quarantine are left out, because they are known and are released later
--
-- The last change is grouped, although it is of one execution: an ungrouped max may be answered from the index on
-- update_time, which reads the whole table for each execution, and is chosen while the table has no statistics.
SELECT
    e.id,
    e.vendor_type,
    e.status AS stored_status,
    r.status AS true_status,
    (SELECT max(t.update_time) FROM task t WHERE t.execution_id = e.id GROUP BY t.execution_id) AS changed_at
FROM execution e
JOIN execution_rollup(%(ids)s::bigint[]) r ON r.execution_id = e.id
WHERE
    e.id = ANY(%(ids)s::bigint[])
    AND (e.status, e.end_time) IS DISTINCT FROM (r.status, r.end_time)
    AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
ORDER BY e.id
