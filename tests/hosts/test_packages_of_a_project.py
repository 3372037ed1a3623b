"""A project may have no psycopg 3 that can be loaded."""

from pathlib import Path
from typing import Any

from tests.hosts.host import Host
from tests.hosts.test_a_celery_app_is_joined import JOINED, SOUND

PROBLEMS = """
from django.core.checks import run_checks

print(json.dumps([[one.id, one.msg, one.hint] for one in run_checks()]))
"""
NOT_LOADED = """
import sys

sys.modules["psycopg"] = None
"""


def problems(host: Host, before: str = "") -> Any:
    return host.ask(before + PROBLEMS, CELERY_BROKER_URL="")


def test_a_psycopg_that_cannot_be_loaded_is_told_with_what_to_type(tmp_path: Path) -> None:
    (found,) = problems(Host(tmp_path, "none", celery=JOINED, settings=SOUND), NOT_LOADED)
    assert found[0] == "harbor_refresh.E009"
    assert found[1] == "psycopg 3 cannot be loaded: import of psycopg halted; None in sys.modules"
    assert found[2].startswith('Type: pip install "psycopg[binary]".')


def test_a_project_starts_without_our_import_of_psycopg(tmp_path: Path) -> None:
    """Django imports it if it can, and psycopg2 otherwise."""
    ours = """
        import sys
        print(json.dumps(sorted(one for one in sys.modules if one.endswith("harbors_types"))))
    """
    assert Host(tmp_path, "none", celery=JOINED).ask(ours) == []


def test_without_any_driver_the_error_says_what_to_type(tmp_path: Path) -> None:
    """As in a project that `startproject` made, with SQLite, on a machine without libpq."""
    host = Host(tmp_path, "none", engine="django.db.backends.sqlite3")
    (tmp_path / "psycopg2.py").write_text("raise ImportError('it is not installed')\n")
    done = host.run("-c", "import django; django.setup()", PSYCOPG_IMPL="none")
    assert done.stderr.splitlines()[-1] == (
        "django.core.exceptions.ImproperlyConfigured: No driver of PostgreSQL can be loaded. "
        'Type: pip install "psycopg[binary]"'
    )
