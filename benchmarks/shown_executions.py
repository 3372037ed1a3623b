"""The rows of the experiment that opens the admin's pages: most executions have succeeded, other statuses are
rare, and the newest have jobs. The first task of an execution decides its status."""

from collections.abc import Callable

from django.db import connection

from benchmarks.stale_executions import Size, fill, settle

Progress = Callable[[int], None]

STATUS = """
CASE
    WHEN n %% 20000 = 7 THEN 'Stopped' WHEN n %% 1000 = 8 THEN 'Error' WHEN n %% 5000 = 9 THEN 'Running'
    ELSE 'Success'
END
"""
EXECUTIONS = f"""
INSERT INTO execution (
    id, vendor_type, vendor_id, status, status_message, trigger, extra_attrs, start_time, end_time, revision
)
SELECT
    n, (%(vendors)s::text[])[1 + n %% %(kinds)s], n %% 1000, status, '',
    CASE n %% 3 WHEN 0 THEN 'SCHEDULE' ELSE 'MANUAL' END,
    jsonb_build_object('repository', jsonb_build_object('name', 'library/app-' || n %% 10000), 'kind', 'image'),
    now() - make_interval(secs => %(all)s - n), CASE WHEN status <> 'Running' THEN now() END, 1
FROM generate_series(%(first)s, %(last)s) AS n, LATERAL (SELECT {STATUS} AS status) AS s
"""  # noqa: S608
TASKS = f"""
INSERT INTO task (
    vendor_type, execution_id, job_id, status, status_code, status_revision, status_message,
    run_count, extra_attrs, start_time, end_time
)
SELECT
    (%(vendors)s::text[])[1 + n %% %(kinds)s], n, lpad(to_hex(n::bigint * %(tasks)s + t), 24, '0'), status,
    CASE WHEN status = 'Running' THEN 2 ELSE 3 END, 0,
    CASE WHEN status = 'Error' THEN 'registry ' || n %% 7 || ' refused the connection' ELSE '' END,
    0, '{{}}', now() - interval '1 minute',
    CASE WHEN status <> 'Running' THEN now() - make_interval(secs => (n * 7 + t) %% 90000) END
FROM
    generate_series(%(first)s, %(last)s) AS n,
    generate_series(1, %(tasks)s) AS t,
    LATERAL (SELECT CASE WHEN t = 1 THEN {STATUS} ELSE 'Success' END AS status) AS s
"""  # noqa: S608
JOBS = """
INSERT INTO execution_job (
    task_id, name, args, kwargs, options, queue, priority, max_attempts, runs_before, holds_key,
    state, run, revision, retries, sent_at, resent
)
SELECT
    id, 'job.kind_' || id %% 5, '[]', '{}', '{}', 'jobs', 0, 5, 0, FALSE,
    CASE WHEN status_code = 3 THEN 'ended' ELSE 'sent' END, 0, 0, 0, now(), 0
FROM (SELECT id, status_code FROM task ORDER BY id DESC LIMIT %(jobs)s) AS newest
"""
HISTORY = """
INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told)
SELECT id, 1, 'Running', status, start_time, TRUE FROM execution ORDER BY id DESC LIMIT 10000
"""


def prepare(size: Size, jobs: int, progress: Progress) -> None:
    fill(size, progress, EXECUTIONS, TASKS)
    with connection.cursor() as cursor:
        cursor.execute(JOBS, {"jobs": jobs})
        cursor.execute(HISTORY)
        cursor.execute("VACUUM ANALYZE execution_job")
    settle()
