-- Picks the overdue jobs of a queue, to be sent again.
--
-- :queue text  :patience float8  seconds after which a job that was sent is overdue, if its workers wait for it
-- :long float8                   and so many, whatever they do; each time twice as many
-- :most int                      how many for each idle slot
-- :limited text[]                names of tasks that have a rate limit
-- returns  what pick.sql returns
--
-- A job that was sent is with the broker, as a rule, and waits for its turn. It is overdue if
-- 1. a job that was sent later, and is not more urgent, runs, or was the last to begin on a worker. So this one was
--    overtaken: its message was lost, or a busy worker holds it; or
-- 2. its workers have idle slots, and none of them has begun a job of this queue lately: messages do not flow. The more
--    often it was sent, and the longer this lasts, the less often it is sent again, because copies pile up if workers
--    cannot reach the broker; or
-- 3. it was sent long ago.
-- No broker is asked. If its message was not lost, the copy finds another run and does nothing. But the copy of a job
-- whose task has a rate limit uses up a part of that limit. So such a job waits for `long` instead of `patience`, for a
-- day instead of `long`, and is not overdue because it was overtaken.
WITH its_workers AS MATERIALIZED (
    SELECT
        id, slots, busy, greatest((began ->> %(queue)s::text)::float8, extract(epoch FROM started_at)) AS began,
        (began -> '' ->> %(queue)s::text)::bigint AS last_begun
    FROM execution_node
    WHERE queues ? %(queue)s::text
),
begun AS MATERIALIZED (
    SELECT priority, max(sent_at) AS sent_at
    FROM (
        SELECT priority, sent_at, resent
        FROM execution_job
        WHERE state = 'running' AND node IN (SELECT id FROM its_workers) AND queue = %(queue)s
        UNION ALL
        SELECT priority, sent_at, resent
        FROM execution_job
        WHERE task_id = ANY(ARRAY(SELECT last_begun FROM its_workers)) AND state <> 'sent'
    ) one
    WHERE resent = 0
    GROUP BY priority
),
flow AS MATERIALIZED (
    SELECT
        sum(greatest(slots - busy, 0)) AS idle,
        extract(epoch FROM now()) - max(began) AS silent
    FROM its_workers
    HAVING count(*) > 0
),
overdue AS MATERIALIZED (
    SELECT j.task_id
    FROM execution_job j
    CROSS JOIN flow f
    CROSS JOIN LATERAL (
        SELECT
            CASE WHEN is_limited THEN %(long)s::float8 ELSE %(patience)s::float8 END AS patience,
            CASE WHEN is_limited THEN 86400 ELSE %(long)s::float8 END * 2 ^ least(j.resent, 9) AS long,
            is_limited
        FROM (SELECT j.name = ANY(%(limited)s::text[]) AS is_limited) l
    ) its
    WHERE
        j.queue = %(queue)s AND j.state = 'sent'
        AND j.sent_at < now() - make_interval(secs => its.patience)
        AND (
            (NOT is_limited AND EXISTS (
                SELECT
                FROM begun b
                WHERE b.priority >= j.priority AND b.sent_at > j.sent_at + make_interval(secs => %(patience)s::float8)
            ))
            OR (
                f.idle > 0 AND f.silent > its.patience
                AND j.sent_at < now() - make_interval(
                    secs => least(f.silent / 2, %(long)s::float8 / 2, its.patience * 2 ^ least(j.resent, 9))
                )
            )
            OR j.sent_at < now() - make_interval(secs => its.long)
        )
        AND NOT EXISTS (SELECT FROM execution_pause WHERE queue = %(queue)s)
    ORDER BY j.sent_at
    LIMIT (SELECT %(most)s::int * greatest(idle, 1) FROM flow)
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE execution_job j
SET sent_at = now(), resent = least(j.resent + 1, 32767)
FROM task t
WHERE j.task_id = ANY(ARRAY(SELECT task_id FROM overdue)) AND t.id = j.task_id
RETURNING
    j.task_id, t.job_id, j.run, j.name, j.queue, j.options - '{countdown,eta,expires}'::text[], j.retries,
    left(j.args::text, 200), left(j.kwargs::text, 200)
