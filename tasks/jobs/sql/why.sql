-- Says why a job does not run, in words.
--
-- :task_id bigint
-- returns  one row: the reason
SELECT CASE
    WHEN j.state = 'ended' AND j.report IS NOT NULL THEN
        'it has ended, and the target of the hook has not taken its report'
    WHEN j.state = 'ended' THEN (
        SELECT concat_ws(': ', 'it has ended as ' || status, nullif(left(status_message, 1000), ''))
        FROM task
        WHERE id = j.task_id
    )
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
    WHEN NOT j.admitted THEN coalesce(l.says, 'it is admitted in a moment')
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
                    AND b.admitted AND (b.priority, b.turn, b.task_id) < (j.priority, j.turn, j.task_id)
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
LEFT JOIN LATERAL (  -- the limit, or the rate, as long as it is full
    SELECT CASE
        WHEN t.taken >= l.concurrency THEN format('limit %%s %%s/%%s', k.words, t.taken, l.concurrency)
        WHEN l.rate IS NOT NULL THEN format(
            'rate %%s %%s/%%s', k.words, l.rate,
            CASE l.per WHEN 1 THEN 's' WHEN 60 THEN 'm' WHEN 3600 THEN 'h' WHEN 86400 THEN 'd' ELSE l.per || ' s' END
        )
    END AS says
    FROM execution_limit l
    CROSS JOIN (SELECT concat_ws(' ', j.name, nullif(j.limit_key, '')) AS words) k
    CROSS JOIN LATERAL (
        SELECT count(*) AS taken
        FROM execution_job o
        WHERE
            o.name = j.name AND o.limit_key = j.limit_key AND o.limit_key IS NOT NULL AND o.admitted
            AND NOT (o.state = 'ended')
    ) t
    WHERE l.name = j.name AND NOT j.admitted
) l ON TRUE
WHERE j.task_id = %(task_id)s
