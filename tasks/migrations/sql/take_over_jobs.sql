-- Takes over jobs of the release before 0002_jobs_on_rows, which had them in Redis: those that have not ended wait, and
-- are sent again. A job that was taken over has a queue, so this may run again.
--
-- :names text[]  :queues text[]  :keys text[]  each name with a queue and a routing key of its options, or NULL
-- :routed text[]                               and the queue to which Celery routes it
-- :first bigint  :last bigint                  of these tasks
--
-- A job may have a run that no row knows: it ran, or its message was fetched, when its worker was stopped. So one
-- that has begun as often as it may begins once more. A countdown counts from the start of the job.
WITH held AS MATERIALIZED (
    SELECT t.id, t.status, t.status_code, t.status_revision, t.run_count, t.creation_time
    FROM task t
    JOIN execution_job j ON j.task_id = t.id
    WHERE t.id BETWEEN %(first)s AND %(last)s AND j.queue = ''
    ORDER BY t.id
    FOR NO KEY UPDATE OF t
)
UPDATE execution_job j
SET
    queue = r.routed,
    priority = coalesce((j.options ->> 'priority')::smallint, 0),
    state = CASE WHEN t.status_code = 3 THEN 'ended' ELSE 'waiting' END,
    run = CASE
        WHEN t.status_code = 3 THEN least(t.run_count, j.runs_before + j.max_attempts)
        ELSE least(t.run_count, j.runs_before + j.max_attempts - 1)
    END,
    revision = t.status_revision,
    unmet = t.status_code < 3 AND j.follows_id IS NOT NULL AND (
        NOT EXISTS (SELECT FROM task b WHERE b.id = j.follows_id AND b.status = 'Success')
        OR (j.takes_result AND j.handed_on_revision IS NULL)
    ),
    not_before = CASE
        WHEN t.status_code = 3 OR t.run_count > 0 OR j.follows_id IS NOT NULL THEN NULL
        WHEN j.options ? 'eta' THEN (j.options ->> 'eta')::timestamptz
        WHEN j.options ? 'countdown'
            THEN t.creation_time + make_interval(secs => (j.options ->> 'countdown')::float8)
    END
FROM
    held t,
    unnest(%(names)s::text[], %(queues)s::text[], %(keys)s::text[], %(routed)s::text[]) AS r (name, queue, key, routed)
WHERE
    t.id = j.task_id
    AND r.name = j.name
    AND r.queue IS NOT DISTINCT FROM j.options ->> 'queue'
    AND r.key IS NOT DISTINCT FROM j.options ->> 'routing_key'
