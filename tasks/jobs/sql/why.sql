-- Says why a job does not run, in words.
--
-- :task_id bigint
-- returns  one row: the reason
SELECT CASE
    WHEN j.state = 'ended' AND j.report IS NOT NULL THEN
        'it has ended, and the target of the hook has not taken its report'
    WHEN j.state = 'ended' THEN 'it has ended'
    WHEN j.state = 'running' THEN format(
        'it runs on %%s, process %%s, since %%s s',
        coalesce((SELECT name FROM execution_node WHERE id = j.node), 'a node that is dead; it is released in a few seconds'),
        j.process, extract(epoch FROM now() - j.begun_at)::int
    )
    WHEN j.waits_for > 0 THEN (
        SELECT format(
            CASE count(*) WHEN 1 THEN 'it waits for task %%s, which it needs'
            ELSE 'it waits for task %%s, and for %%s of the %%s jobs that it needs in all' END,
            min(needed_id) FILTER (WHERE NOT is_met), j.waits_for, count(*)
        )
        FROM execution_need
        WHERE job_id = j.task_id
    )
    WHEN j.not_before > now() THEN format('its time is in %%s s', ceil(extract(epoch FROM j.not_before - now())))
    WHEN p.queue IS NOT NULL THEN format('the queue %%s is paused by %%s', j.queue, p.by)
    WHEN w.slots = 0 THEN format('no live worker takes the queue %%s', j.queue)
    WHEN j.state = 'sent' THEN format(
        'sent %%s s ago, %%s of %%s slots of its workers are busy', extract(epoch FROM now() - j.sent_at)::int, w.busy,
        w.slots
    )
    ELSE format(
        '%%s jobs of the queue %%s come before it', (
            SELECT count(*) FROM (
                SELECT
                FROM execution_job b
                WHERE b.queue = j.queue AND b.state = 'waiting' AND b.waits_for = 0 AND b.not_before IS NULL
                    AND (b.priority, b.task_id) < (j.priority, j.task_id)
                LIMIT 10000
            ) before
        ), j.queue
    )
END
FROM execution_job j
LEFT JOIN execution_pause p ON p.queue = j.queue
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum(n.slots), 0) AS slots,
        coalesce(sum(n.busy), 0) AS busy
    FROM execution_node n
    WHERE n.queues ? j.queue
) w
WHERE j.task_id = %(task_id)s
