-- Finds what a worker has to look after, so that the statements for it are asked only if there is something to do.
--
-- :node bigint  its own  :queues text[]  its own  :ttl float8  seconds
-- returns  processes int[]     where its jobs run
--          is_one_silent bool  some worker was not heard for the ttl (tasks/jobs/live_workers.py)
--          has_consequences    a failure, or a deadline, has consequences (tasks/jobs/terms.py), or NULL
--          may_send            the time of a job of its queues has come, or a job waits for its limit; false: a job
--                              waits for a later time; or NULL
--          with_jobs text[]    its queues that have jobs to send, or sent ones, or NULL
--
-- Each order keeps out a scan of the table.
SELECT
    ARRAY(SELECT DISTINCT process FROM execution_job WHERE state = 'running' AND node = %(node)s::bigint),
    EXISTS (SELECT FROM execution_node WHERE abs(extract(epoch FROM now() - heard_at)) > %(ttl)s::float8),
    EXISTS (SELECT FROM execution_failure)
    OR (SELECT TRUE FROM execution_terms WHERE deadline <= now() AND NOT is_over ORDER BY deadline LIMIT 1),
    greatest(bool_or(of_queue.is_due), (
        SELECT TRUE
        FROM execution_job
        WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted
        ORDER BY name, limit_key
        LIMIT 1
    )),
    array_agg(g.queue) FILTER (WHERE of_queue.has_next OR of_queue.has_sent)
FROM unnest(%(queues)s::text[]) AS g (queue)
CROSS JOIN LATERAL (
    SELECT (
        SELECT not_before <= now()
        FROM execution_job
        WHERE queue = g.queue AND state = 'waiting' AND waits_for = 0 AND not_before IS NOT NULL
        ORDER BY not_before
        LIMIT 1
    ) AS is_due, (
        SELECT TRUE
        FROM execution_job
        WHERE queue = g.queue AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted
        ORDER BY priority, turn, task_id
        LIMIT 1
    ) AS has_next, (
        SELECT TRUE FROM execution_job WHERE queue = g.queue AND state = 'sent' ORDER BY sent_at LIMIT 1
    ) AS has_sent
) of_queue
