-- The function that admits jobs with a limit, for admit.sql. A job that is admitted has a place in its limit until it
-- has ended, or waits for another run. So the rows are the count, and a place is free with them, after any crash.
--
-- of_tasks bigint[]  tasks whose keys are looked at, because their jobs have ended or have been started; NULL: all keys
--                    with waiting jobs, unless another process has looked a moment ago
-- returns  the queues of the jobs that are admitted
--
-- 1. Lock the limits. So one process at a time admits jobs of a limit, and because each statement of a function sees
--    what was committed before it, 2 sees each job that the process before it has admitted.
-- 2. For each key, admit the next jobs by their priority and turn, as far as there is room: fewer than `concurrency`
--    have a place, and the rate lets the next one begin (GCRA: `next_at` is its only state). A rate lets those come
--    together that were due in the last 0.4 s, because limits are looked at each 0.2 s. While workers are down or busy,
--    it admits no more than begin in two seconds, so these cannot pile up. A job that has expired begins only so as to
--    end, and uses up no rate.
--
-- A moment a minute further ahead than it can be comes from a clock that has gone back. It does not count.
--
-- A job that is admitted comes next in its queue, but behind those that its limit has admitted there before and that
-- still wait (1,000 of them are looked at), so that other jobs of the queue take turns with them. If the next job of a
-- key is in a queue that is paused, the key waits.
--
-- A migration reads this file: an edit needs a migration.
CREATE OR REPLACE FUNCTION execution_admit(of_tasks bigint[]) RETURNS SETOF text
LANGUAGE plpgsql
SET random_page_cost = 0 AS $$
DECLARE
    names text[];
    at_now timestamptz;
BEGIN
    PERFORM  -- the order keeps out a scan of the table
    FROM execution_job
    WHERE state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted
    ORDER BY name, limit_key
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF of_tasks IS NULL THEN
        SELECT array_agg(name) INTO names
        FROM (
            SELECT name
            FROM execution_limit
            WHERE swept_at NOT BETWEEN
                clock_timestamp() - make_interval(secs => CASE WHEN rate IS NULL THEN 0.8 ELSE 0.15 END)
                AND clock_timestamp() + interval '1 minute'
            ORDER BY name
            FOR NO KEY UPDATE SKIP LOCKED
        ) stale;
        IF names IS NULL THEN
            RETURN;
        END IF;
    ELSE
        PERFORM
        FROM execution_limit
        WHERE name IN (SELECT name FROM execution_job WHERE task_id = ANY(of_tasks) AND limit_key IS NOT NULL)
        ORDER BY name
        FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;

    at_now := clock_timestamp();
    RETURN QUERY
    WITH RECURSIVE swept AS (
        SELECT
            g.name, (
                SELECT j.limit_key
                FROM execution_job j
                WHERE j.name = g.name AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted
                ORDER BY j.limit_key
                LIMIT 1
            ) AS key
        FROM unnest(names) AS g (name)
        UNION ALL
        SELECT
            s.name, (
                SELECT j.limit_key
                FROM execution_job j
                WHERE
                    j.name = s.name AND j.limit_key > s.key
                    AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted
                ORDER BY j.limit_key
                LIMIT 1
            )
        FROM swept s
        WHERE s.key IS NOT NULL
    ),
    keys AS MATERIALIZED (
        SELECT s.name, s.key FROM swept s WHERE s.key IS NOT NULL
        UNION
        SELECT j.name, j.limit_key FROM execution_job j WHERE j.task_id = ANY(of_tasks) AND j.limit_key IS NOT NULL
    ),
    room AS MATERIALIZED (
        SELECT k.name, k.key, r.each, p.next_at, least(l.concurrency - t.taken, of_rate.room, 1000) AS room
        FROM keys k
        LEFT JOIN execution_limit l ON l.name = k.name
        CROSS JOIN LATERAL (SELECT l.per::float8 / l.rate AS each) r
        LEFT JOIN execution_limit_pace p ON
            p.name = k.name AND p.key = k.key AND p.next_at < at_now + make_interval(secs => r.each + 60)
        CROSS JOIN LATERAL (
            SELECT count(*) AS taken, count(*) FILTER (WHERE state <> 'running') AS unbegun
            FROM execution_job j
            WHERE
                j.name = k.name AND j.limit_key = k.key
                AND j.limit_key IS NOT NULL AND admitted AND NOT (state = 'ended')
        ) t
        CROSS JOIN LATERAL (
            SELECT least(
                floor((0.4 - greatest(extract(epoch FROM p.next_at - at_now), 0)) / r.each) + 1,
                ceil(2 / r.each) - t.unbegun
            )::bigint AS room
        ) of_rate
    ),
    chosen AS MATERIALIZED (
        SELECT
            r.name, r.key, j.task_id, j.queue, j.priority, j.has_expired,
            row_number() OVER (PARTITION BY r.name, j.queue, j.priority ORDER BY j.turn, j.task_id) - 1 AS place
        FROM room r
        CROSS JOIN LATERAL (
            SELECT
                task_id, queue, priority, turn,
                CASE WHEN jsonb_typeof(options -> 'expires') = 'string' THEN
                    (options ->> 'expires')::timestamptz < at_now
                END AS has_expired
            FROM execution_job j
            WHERE
                j.name = r.name AND j.limit_key = r.key
                AND state = 'waiting' AND waits_for = 0 AND not_before IS NULL AND NOT admitted
            ORDER BY priority, turn, task_id
            LIMIT greatest(r.room, 0)
            FOR NO KEY UPDATE SKIP LOCKED
        ) j
        WHERE r.room > 0 AND NOT EXISTS (SELECT FROM execution_pause WHERE execution_pause.queue = j.queue)
    ),
    paced AS (
        INSERT INTO execution_limit_pace (name, key, next_at)
        SELECT r.name, r.key, greatest(r.next_at, at_now) + make_interval(secs => r.each * count(*))
        FROM chosen c
        JOIN room r ON r.name = c.name AND r.key = c.key
        WHERE r.each IS NOT NULL AND c.has_expired IS NOT TRUE
        GROUP BY r.name, r.key, r.next_at, r.each
        ON CONFLICT (name, key) DO UPDATE SET next_at = EXCLUDED.next_at
    ),
    lines AS MATERIALIZED (
        SELECT
            l.name, l.queue, l.priority,
            greatest(execution_turn(l.queue, l.priority, NULL, NULL, NULL), before.turn + 1000000) AS turn
        FROM (SELECT DISTINCT c.name, c.queue, c.priority FROM chosen c) l
        CROSS JOIN LATERAL (
            SELECT max(one.turn) AS turn
            FROM (
                SELECT j.turn
                FROM execution_job j
                WHERE
                    j.name = l.name AND j.limit_key IS NOT NULL AND j.admitted AND NOT (j.state = 'ended')
                    AND j.state = 'waiting' AND j.queue = l.queue AND j.priority = l.priority
                LIMIT 1000
            ) one
        ) before
    ),
    admitted AS (
        UPDATE execution_job j
        SET admitted = TRUE, turn = l.turn + 1000000 * c.place
        FROM chosen c
        JOIN lines l USING (name, queue, priority)
        WHERE j.task_id = c.task_id
        RETURNING j.queue
    )
    SELECT DISTINCT queue::text FROM admitted;
    IF of_tasks IS NULL THEN  -- looks take a fifth of the time at most
        UPDATE execution_limit
        SET swept_at = clock_timestamp() + least(4 * (clock_timestamp() - at_now), interval '1 minute')
        WHERE name = ANY(names);
    END IF;
END
$$
