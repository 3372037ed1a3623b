"""An upgrade in the middle of the work: each unfinished job of the release that had jobs in Redis waits."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests import servers
from tests.terminal import ran

NAME = "upgraded"
BEFORE = """
INSERT INTO execution (vendor_type, vendor_id, status, status_message, trigger, revision, start_time, update_time,
    extra_attrs)
VALUES ('SCAN', 0, 'Running', '', 'MANUAL', 0, now(), now(), '{}');
INSERT INTO task (execution_id, job_id, status, status_code, status_revision, run_count, creation_time,
    update_time, status_message, extra_attrs, vendor_type,
    end_time)
SELECT max(e.id), g.job, g.status, g.code, g.revision, g.runs, now() - interval '1 minute', now(), '', '{}',
    'SCAN', CASE g.code WHEN 3 THEN now() END
FROM execution e, (VALUES
    ('waits', 'Pending', 0, 0, 0), ('runs', 'Running', 2, 0, 1), ('last try', 'Running', 2, 2, 3),
    ('retries', 'Scheduled', 1, 1, 1), ('has ended', 'Success', 3, 0, 1), ('chained', 'Pending', 0, 0, 0),
    ('its turn', 'Pending', 0, 0, 0), ('later', 'Pending', 0, 0, 0), ('routed', 'Pending', 0, 0, 0)
) AS g (job, status, code, revision, runs)
GROUP BY g.job, g.status, g.code, g.revision, g.runs
ORDER BY g.job IN ('chained', 'its turn');
INSERT INTO execution_job (task_id, name, args, kwargs, arguments_revision, options, max_attempts, runs_before,
    holds_key, takes_result, published_at)
SELECT id, 'a.job', '[1]', '{}', 0, '{}', 3, 0, false, false, now() FROM task;
UPDATE execution_job SET options = '{"countdown": 3600}' FROM task t WHERE t.id = task_id AND t.job_id = 'later';
UPDATE execution_job SET options = '{"queue": "slow"}' FROM task t WHERE t.id = task_id AND t.job_id = 'routed';
UPDATE execution_job SET follows_id = (SELECT id FROM task WHERE job_id = 'waits'), published_at = NULL
FROM task t WHERE t.id = task_id AND t.job_id = 'chained';
UPDATE execution_job SET follows_id = (SELECT id FROM task WHERE job_id = 'has ended'), handed_on_revision = 0
FROM task t WHERE t.id = task_id AND t.job_id = 'its turn';
"""


def manage(*words: str) -> None:
    env = os.environ | {"DATABASE_URL": servers.postgres.url_for(NAME), "DJANGO_SETTINGS_MODULE": "settings.test"}
    done = ran([sys.executable, "manage.py", *words], env=env)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture
def database_url() -> Iterator[str]:
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {NAME}".encode())
        try:
            yield servers.postgres.url_for(NAME)
        finally:
            server.execute(f"DROP DATABASE {NAME} WITH (FORCE)".encode())


def rows_of(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as database:
        return database.execute(statement.encode()).fetchall()


@pytest.mark.slow
def test_unfinished_jobs_wait_and_ended_jobs_have_ended(database_url: str) -> None:
    """The release before is the way back of its migrations."""
    columns = (
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
        " WHERE table_name LIKE 'execution%' ORDER BY 1, 2"
    )
    manage("migrate", "--verbosity=0")
    after = rows_of(database_url, columns)
    manage("migrate", "harbor_tasks", "0001_initial", "--verbosity=0")
    assert rows_of(database_url, columns) != after
    with psycopg.connect(database_url, autocommit=True) as database:
        database.execute(BEFORE.encode())
    manage("migrate", "--verbosity=0")
    assert rows_of(database_url, columns) == after
    rows = rows_of(
        database_url,
        "SELECT t.job_id, j.state, j.run, j.revision, j.waits_for, j.queue, j.not_before IS NOT NULL, j.options"
        " FROM execution_job j JOIN task t ON t.id = j.task_id",
    )
    jobs = "harbor_refresh.jobs"
    assert {name: tuple(values) for name, *values in rows} == {
        "waits": ("waiting", 0, 0, 0, jobs, False, {}),
        "runs": ("waiting", 1, 0, 0, jobs, False, {}),
        "last try": ("waiting", 2, 2, 0, jobs, False, {}),
        "retries": ("waiting", 1, 1, 0, jobs, False, {}),
        "has ended": ("ended", 1, 0, 0, jobs, False, {}),
        "chained": ("waiting", 0, 0, 1, jobs, False, {}),
        "its turn": ("waiting", 0, 0, 0, jobs, False, {}),
        "later": ("waiting", 0, 0, 0, jobs, True, {"countdown": 3600}),
        "routed": ("waiting", 0, 0, 0, "slow", False, {"queue": "slow"}),
    }
