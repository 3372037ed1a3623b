-- Compares the stored status and end of one execution with the rollup of its tasks.
--
-- :id      bigint
-- returns  vendor_type, status, end_time; the status and end_time that its tasks give, NULL if it has no tasks;
--          attempts, at and reason of its quarantine, NULL if it is in none; no row if there is no such execution
SELECT
    e.vendor_type,
    coalesce(e.status, ''),
    e.end_time,
    r.status AS true_status,
    r.end_time AS true_end_time,
    q.attempts,
    q.at,
    q.reason
FROM execution e
LEFT JOIN execution_rollup(ARRAY[%(id)s::bigint]) r ON r.execution_id = e.id
LEFT JOIN execution_quarantine q ON q.execution_id = e.id
WHERE e.id = %(id)s::bigint
