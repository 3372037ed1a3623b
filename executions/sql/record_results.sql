-- Records what became of claimed deliveries, and moves the circuits of their webhooks.
--
-- :subscriptions bigint[]  those of the deliveries
-- :ids bigint[]  :attempts int[]  the claim that the result belongs to: an older claim records nothing
-- :outcomes text[]  delivered, dead, again (after `delays`), unsent (due at once, and the attempt does not count), or
--          lost (dead, because an earlier attempt was the last one, and this one does not count)
-- :delays float[]  :errors text[]
-- :answered bool[]  the receiver answered in a way that shows that it works; NULL says nothing of it
-- :max_attempts int  :max_age float  a delivery with so many attempts, or older than that at its next one, is dead
-- :opens int  :most_pause float  the circuit: after so many failures in a row it waits, so many seconds at most
-- returns  id, subscription, execution_id, revision, state of each result that was recorded
--
-- Rows are locked in id order: first the subscriptions, so that none is deleted meanwhile, then the deliveries. The
-- pause of a circuit is half of the time since the first failure, so it grows by half with each probe that fails.
WITH given AS (
    SELECT *
    FROM unnest(
        %(ids)s::bigint[],
        %(attempts)s::int[],
        %(outcomes)s::text[],
        %(delays)s::float[],
        %(errors)s::text[],
        %(answered)s::bool[]
    ) AS g (id, attempts, outcome, delay, error, answered)
),
subscribed AS MATERIALIZED (
    SELECT id FROM execution_subscription WHERE id = ANY(%(subscriptions)s::bigint[]) ORDER BY id FOR NO KEY UPDATE
),
held AS MATERIALIZED (
    SELECT d.id
    FROM execution_delivery d
    -- the count comes first, so the subscriptions are locked before the deliveries
    WHERE d.id = ANY(%(ids)s::bigint[]) AND (SELECT count(*) FROM subscribed) > 0
    ORDER BY d.id
    FOR NO KEY UPDATE
),
judged AS MATERIALIZED (
    SELECT
        g.*,
        CASE
            WHEN g.outcome IN ('delivered', 'dead') THEN g.outcome
            WHEN g.outcome = 'unsent' THEN 'pending'
            WHEN g.outcome = 'lost' THEN 'dead'
            WHEN
                d.attempts >= %(max_attempts)s
                OR now() + make_interval(secs => g.delay)
                > d.created_at + make_interval(secs => %(max_age)s)
            THEN 'dead'
            ELSE 'pending'
        END AS state
    FROM given g
    JOIN held h ON h.id = g.id
    JOIN execution_delivery d ON d.id = g.id
),
recorded AS (
    UPDATE execution_delivery d
    SET
        state = j.state,
        attempts = d.attempts - CASE WHEN j.outcome IN ('unsent', 'lost') THEN 1 ELSE 0 END,
        next_at = CASE WHEN j.state = 'pending' THEN statement_timestamp() + make_interval(secs => j.delay) END,
        ended_at = CASE WHEN j.state <> 'pending' THEN now() END,
        last_error = CASE WHEN j.outcome = 'unsent' THEN d.last_error ELSE j.error END
    FROM judged j
    WHERE d.id = j.id AND d.state = 'pending' AND d.attempts = j.attempts
    RETURNING d.id, d.subscription_id, d.execution_id, d.revision, d.state, j.answered
),
receivers AS (
    SELECT subscription_id, bool_or(answered) AS answered, count(*) FILTER (WHERE NOT answered) AS failed
    FROM recorded
    WHERE answered IS NOT NULL
    GROUP BY subscription_id
),
moved AS (
    UPDATE execution_subscription s
    SET
        failures = CASE WHEN r.answered THEN 0 ELSE least(s.failures + r.failed, 1000000) END,
        failing_since = CASE WHEN NOT r.answered THEN coalesce(s.failing_since, now()) END,
        retry_at = CASE
            WHEN NOT r.answered AND s.failures + r.failed >= %(opens)s
            THEN now() + (0.75 + random() / 2) * make_interval(secs => least(
                %(most_pause)s,
                greatest(5, extract(epoch FROM now() - coalesce(s.failing_since, now())) / 2)
            )::float)
        END
    FROM receivers r
    WHERE s.id = r.subscription_id AND s.kind = 'webhook' AND (NOT r.answered OR s.failures > 0)
)
SELECT r.id, s.name, r.execution_id, r.revision, r.state
FROM recorded r
JOIN execution_subscription s ON s.id = r.subscription_id
ORDER BY r.id
