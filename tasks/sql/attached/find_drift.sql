-- Finds those of the given executions whose stored status or end_time differs from the rollup of their tasks.
--
-- :ids      bigint[]
-- :dangling interval  how long an execution runs before Harbor gives it up
-- returns  id, vendor_type, stored_status ('' if it has none), true_status, changed_at (the last change of a task; NULL if
--          Harbor has cleared it for all of them), in id order; executions in quarantine are left out
--
-- The vendor type is that of its tasks, as in the marks of Harbor. A colon in it would make the mark unreadable.
-- Harbor gives up executions that are Running for a week and of which no task is Running: it sets a final status, whatever
-- the waiting tasks say. Such an execution is left as Harbor left it, because Harbor would set it again.
WITH differing AS MATERIALIZED (
    SELECT e.id, e.status AS stored_status, e.start_time, r.status AS true_status
    FROM execution e
    JOIN execution_rollup(%(ids)s::bigint[]) r ON r.execution_id = e.id
    WHERE
        e.id = ANY(%(ids)s::bigint[])
        AND (e.status, e.end_time) IS DISTINCT FROM (r.status, r.end_time)
        AND NOT EXISTS (SELECT FROM execution_quarantine q WHERE q.execution_id = e.id)
)
SELECT
    d.id,
    coalesce(nullif(replace(its.vendor_type, ':', '_'), ''), '?') AS vendor_type,
    coalesce(d.stored_status, '') AS stored_status,
    d.true_status,
    its.changed_at
FROM differing d
CROSS JOIN LATERAL (
    SELECT
        min(t.vendor_type) AS vendor_type,
        max(t.update_time) AS changed_at,
        count(*) FILTER (WHERE t.status = 'Running') AS running
    FROM task t
    WHERE t.execution_id = d.id
) its
WHERE
    (
        d.true_status = 'Running'
        AND d.stored_status IN ('Error', 'Stopped', 'Success')
        AND d.start_time < (now() - %(dangling)s::interval) AT TIME ZONE 'UTC'
        AND its.running = 0
    ) IS NOT TRUE
ORDER BY d.id
