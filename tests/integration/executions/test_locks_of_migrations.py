"""squawk reads the SQL of each migration: none holds a lock on a large table for long. `make lint` runs this."""

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

SQUAWK = Path(sys.executable).with_name("squawk")
#: Rules about the types of columns, which are Harbor's and Django's; about `IF NOT EXISTS`, which Django does not
#: write; and about what programs of an older release read, which are stopped. And a limit for each statement: it
#: would also end an index that is made without a lock.
NOT_ABOUT_LOCKS = (
    "ban-drop-column",
    "ban-drop-constraint",
    "ban-drop-default",
    "ban-drop-function",
    "ban-drop-table",
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-robust-stmts",
    "prefer-text-field",
    "require-statement-timeout",
)
#: The first migration of an app makes its tables. They are empty, and no process uses them.
ON_NEW_TABLES = ("adding-foreign-key-constraint", "adding-required-field", "require-lock-timeout")


def findings(sql: str, *more: str) -> str:
    """Return what squawk finds, except for these rules more."""
    words = ["--reporter", "gcc", "--pg-version", "14", "--exclude", ",".join((*NOT_ABOUT_LOCKS, *more))]
    done = subprocess.run([SQUAWK, *words], input=sql, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert (done.returncode == 1) == ("warning: " in done.stdout or "error: " in done.stdout)
    return done.stdout


@pytest.mark.usefixtures("database")
def test_no_migration_holds_a_lock_on_a_large_table_for_long() -> None:
    ours = {one.label for one in apps.get_app_configs() if one.label.startswith("harbor")}
    migrations = MigrationLoader(connection).disk_migrations
    found = {}
    for (app, name), migration in migrations.items():
        if app in ours:
            out = StringIO()
            call_command("sqlmigrate", app, name, stdout=out, no_color=True)
            found[app, name] = findings(out.getvalue(), *(ON_NEW_TABLES if migration.initial else ()))
    assert {("harbor_executions", "0001_initial"), ("harbor_tasks", "0001_initial")} <= found.keys()
    assert {one: text for one, text in found.items() if text} == {}


BRIEF = "SET lock_timeout = '2s';\n"


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("CREATE INDEX task_by_job ON task (job_id);", "require-concurrent-index-creation"),
        ("ALTER TABLE task ALTER COLUMN id TYPE bigint;", "changing-column-type"),
        ("ALTER TABLE task ADD COLUMN priority integer NOT NULL;", "adding-required-field"),
        ("ALTER TABLE task ADD CONSTRAINT known CHECK (status_code >= 0);", "constraint-missing-not-valid"),
        ("ALTER TABLE task ADD COLUMN priority integer;", "require-lock-timeout"),
    ],
)
def test_a_statement_that_blocks_a_large_table_is_found(sql: str, rule: str) -> None:
    assert rule in findings(sql if rule == "require-lock-timeout" else BRIEF + sql)
