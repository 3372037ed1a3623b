"""`manage.py doctor`: what it prints, its JSON, its exit codes."""

import pytest
from django.core.management import CommandError, call_command

from harbor_refresh.local.ports import choose_port
from harbor_refresh.tasks.broker.celery_queues import JOBS
from tests.integration.checks.examined import CHECKS
from tests.integration.command_output import data, failing, manage, said

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_problem_is_a_line_of_what_is_wrong_and_one_of_what_to_do() -> None:
    """A warning fails only if that is asked for."""
    call_command("harbor", "pause", JOBS)
    lines = [line.rstrip() for line in said("doctor", "--only", "status.paused").splitlines()]
    assert lines[0] == (
        "warning  status.paused  An operator has paused the queue harbor_refresh.jobs. New work waits until it is "
        "unpaused. Nothing is lost."
    )
    assert lines[1] == (
        "         what to do: manage.py harbor unpause harbor_refresh.jobs, or resume it on the queue page"
    )
    assert lines[-1].endswith(" sound, 1 warning.")
    assert failing("doctor", "--only", "status.paused", "--fail-level", "warning")[1] == "1 problem"
    assert lines[0] in failing("harbor", "check")[0]


def test_json_has_each_check_with_its_verdict() -> None:
    told = data("doctor", "--only", "redis")
    assert told["sound"] is True
    assert {one["check"]: one["verdict"] for one in told["checks"]} == {
        check.id: "sound" for check in CHECKS if check.id.startswith("redis") or check.answers_for
    }
    assert set(told["checks"][0]) == {"check", "title", "verdict", "needs", "problems"}


@pytest.mark.slow
def test_without_redis_the_checks_that_need_it_are_not_made_and_the_rest_is() -> None:
    ran = manage("doctor", "--json", REDIS_URL=f"redis://127.0.0.1:{choose_port()}/0")
    assert ran.returncode == 1
    assert '"needs": "Redis"' in ran.stdout
    assert '"check": "tables.retention"' in ran.stdout
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.slow
def test_without_a_database_the_other_checks_are_made() -> None:
    ran = manage("doctor", DATABASE_URL=f"postgresql://u:s3cret-word@127.0.0.1:{choose_port()}/n")
    assert ran.returncode == 1
    assert "PostgreSQL is down." in ran.stdout
    assert "because PostgreSQL does not answer" in ran.stdout
    assert "redis.reachable" not in ran.stdout
    assert "s3cret-word" not in ran.stdout + ran.stderr


def test_settings_that_stop_every_other_command_are_a_finding_of_this_one() -> None:
    ran = manage("doctor", "--only", "settings", REFRESH_ATTACH="harbor", REFRESH_STRATEGY="scan")
    assert ran.returncode == 1
    assert "harbor_tasks.E004" in ran.stdout


def test_a_check_that_does_not_exist_is_misuse() -> None:
    with pytest.raises(CommandError, match="takes a check or the beginning of one"):
        call_command("doctor", "--only", "weather")
