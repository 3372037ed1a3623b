-- Reads what the overview shows of the database. Cheap at any size: no count goes beyond :most rows.
--
-- :most integer  the largest count
-- :tasks text[]  the Celery tasks of the rows of beat's schedule
-- returns  quarantined, dead letters, open actions
--          seconds since the last pass of reconcile began, and the executions that it found and marked; NULL if there
--          was none
--          the rows of the schedule as JSON: [name, task, enabled, interval in seconds or null, seconds since beat sent
--          it or null]
--          the paused queues, as JSON, the oldest pause first
SELECT
    (SELECT count(*) FROM (SELECT FROM execution_quarantine LIMIT %(most)s) AS counted),
    (SELECT count(*) FROM (SELECT FROM execution_delivery WHERE state = 'dead' LIMIT %(most)s) AS counted),
    (SELECT count(*) FROM (
        SELECT FROM execution_action WHERE state IN ('queued', 'running') LIMIT %(most)s
    ) AS counted),
    (SELECT extract(EPOCH FROM now() - last_pass_at)::float FROM execution_watermark WHERE id = 1),
    (SELECT last_drifted FROM execution_watermark WHERE id = 1),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(
            planned.name,
            planned.task,
            planned.enabled,
            extract(EPOCH FROM make_interval(
                days => CASE rhythm.period WHEN 'days' THEN rhythm.every ELSE 0 END,
                hours => CASE rhythm.period WHEN 'hours' THEN rhythm.every ELSE 0 END,
                mins => CASE rhythm.period WHEN 'minutes' THEN rhythm.every ELSE 0 END,
                secs => CASE rhythm.period WHEN 'seconds' THEN rhythm.every WHEN 'microseconds' THEN rhythm.every / 1e6 ELSE 0 END
            ))::float,
            extract(EPOCH FROM now() - planned.last_run_at)::float
        ) ORDER BY planned.name), '[]')
        FROM django_celery_beat_periodictask AS planned
        LEFT JOIN django_celery_beat_intervalschedule AS rhythm ON rhythm.id = planned.interval_id
        WHERE planned.task = ANY(%(tasks)s)
    ),
    (SELECT coalesce(jsonb_agg(queue ORDER BY at, queue), '[]') FROM execution_pause)
