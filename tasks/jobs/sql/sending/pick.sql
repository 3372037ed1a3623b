-- Picks the next jobs of a queue, and notes them as sent: waiting -> sent. The messages go out after the commit.
--
-- :queue text  :floor int  the broker holds so many jobs of a queue whose workers are not known
-- :each int    and of others what their workers do in 1.5 seconds, two for each slot at least, and at most `each` for
--              each slot, or `floor` in all
-- :most int    how many at most
-- returns  task_id, job, run, name, queue, options, retries, args, kwargs (their beginnings, for people). No countdown, eta
--          or expires: the row has the times, and begin.sql looks at the last. The seconds of `expires` of a job that
--          needs others count from now. One row of NULLs if another process picks for the queue
--
-- It fills up a queue that has run half empty, so that ends of jobs send many at a time. Jobs that are more urgent than
-- those that are sent do not wait for them. One process picks for a queue at a time; another one picks nothing.
WITH picker AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('harbor_refresh pick'), hashtext(%(queue)s)) AS is_ours
),
next AS MATERIALIZED (
    SELECT priority
    FROM execution_job
    WHERE
        queue = %(queue)s AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted
        AND NOT EXISTS (SELECT FROM execution_pause WHERE queue = %(queue)s)
        AND (SELECT is_ours FROM picker)
    ORDER BY priority, turn, task_id
    LIMIT 1
),
room AS MATERIALIZED (
    SELECT
        n.priority,
        coalesce((
            SELECT
                least(
                    greatest(%(each)s::int * sum(slots), %(floor)s::int), sum(greatest(2 * slots, ceil(1.5 * rate)))
                )
            FROM execution_node
            WHERE queues ? %(queue)s::text
        ), %(floor)s::int)::bigint AS target,
        s.sent,
        s.as_urgent
    FROM next n
    CROSS JOIN LATERAL (
        SELECT count(*) AS sent, count(*) FILTER (WHERE j.priority <= n.priority) AS as_urgent
        FROM execution_job j
        WHERE j.queue = %(queue)s AND j.state = 'sent'
    ) s
),
picked AS MATERIALIZED (
    SELECT task_id
    FROM execution_job
    WHERE
        queue = %(queue)s AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND admitted
        AND priority <= (SELECT CASE WHEN sent * 2 <= target THEN 32767 ELSE priority END FROM room)
    ORDER BY priority, turn, task_id
    LIMIT coalesce((  -- without a row there would be no limit
        SELECT least(%(most)s::int, CASE
            WHEN sent * 2 <= target THEN target - sent
            WHEN as_urgent * 2 <= target THEN target - as_urgent
            ELSE 0
        END)
        FROM room
    ), 0)
    FOR NO KEY UPDATE SKIP LOCKED
),
noted AS (
    UPDATE execution_job j
    SET
        state = 'sent',
        sent_at = now(),
        resent = 0,
        options = CASE jsonb_typeof(j.options -> 'expires')
            WHEN 'number' THEN jsonb_set(
                j.options, '{expires}', to_jsonb(now() + make_interval(secs => (j.options ->> 'expires')::float8))
            )
            ELSE j.options
        END
    FROM task t
    WHERE j.task_id = ANY(ARRAY(SELECT task_id FROM picked)) AND t.id = j.task_id
    RETURNING
        j.task_id, t.job_id, j.run, j.name, j.queue, j.options - '{countdown,eta,expires}'::text[] AS options, j.retries,
        left(j.args::text, 200) AS args, left(j.kwargs::text, 200) AS kwargs, j.priority, j.turn
)
SELECT task_id, job_id, run, name, queue, options, retries, args, kwargs
FROM picker
LEFT JOIN noted ON is_ours
WHERE task_id IS NOT NULL OR NOT is_ours
ORDER BY priority, turn, task_id
