-- Reads the rows of beat's schedule that are ours. Only a project with django-celery-beat has its tables.
--
-- :tasks text[]  the Celery tasks of the rows
-- :names text[]  the names of the rows, whatever task an administrator has written there
-- returns  the rows as JSON: [name, task, enabled, interval in seconds or null, seconds since beat sent it or null,
--          whether it is sent once only, seconds until its start or null]
SELECT coalesce(jsonb_agg(jsonb_build_array(
    planned.name,
    planned.task,
    planned.enabled,
    extract(EPOCH FROM (rhythm.every || ' ' || rhythm.period)::interval)::float,
    extract(EPOCH FROM now() - planned.last_run_at)::float,
    planned.one_off,
    extract(EPOCH FROM planned.start_time - now())::float
) ORDER BY planned.name), '[]')
FROM django_celery_beat_periodictask AS planned
LEFT JOIN django_celery_beat_intervalschedule AS rhythm ON rhythm.id = planned.interval_id
WHERE planned.task = ANY(%(tasks)s) OR planned.name = ANY(%(names)s)
