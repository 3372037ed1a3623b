"""The executions of the experiment that reads them over HTTP: most have succeeded, some statuses are rare, and the
starts are a second apart."""

from benchmarks.stale_executions import Progress, Size, fill

EXECUTIONS = """
INSERT INTO execution (
    id, vendor_type, vendor_id, status, status_message, trigger, extra_attrs, start_time, end_time, revision
)
SELECT
    n, (%(vendors)s::text[])[1 + n %% %(kinds)s], n %% 1000, status, '',
    CASE n %% 3 WHEN 0 THEN 'SCHEDULE' ELSE 'MANUAL' END,
    jsonb_build_object('repository', jsonb_build_object('name', 'library/app-' || n %% 10000)),
    now() - make_interval(secs => %(all)s - n), CASE WHEN status <> 'Running' THEN now() END, 1
FROM generate_series(%(first)s, %(last)s) AS n, LATERAL (
    SELECT CASE
        WHEN n %% 100000 = 7 THEN 'Stopped' WHEN n %% 1000 = 8 THEN 'Error' WHEN n %% 20 = 0 THEN 'Running'
        ELSE 'Success'
    END AS status
) AS s
"""


def prepare(size: Size, progress: Progress) -> None:
    fill(size, progress, EXECUTIONS)
