"""docs/howto/from_harbor_marks.md: its commands, in their order, lead from Harbor's keys to the queue and back."""

import shlex

import pytest

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.queue import execution_queue
from tests import pages
from tests.integration.command_output import said
from tests.integration.old_release import key_of
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import drifted

PAGE = pages.read("docs/howto/from_harbor_marks.md")
LINES = pages.lines(PAGE)


def words(line: str) -> list[str]:
    program, script, *rest = shlex.split(line, comments=True)
    assert (program, script) == ("python", "manage.py"), line
    return rest


def run(line: str) -> str:
    """Its output in one line. It fails the test if it ends with another code than 0."""
    return " ".join(said(*words(line)).split())


@pytest.mark.usefixtures("database")
def test_each_command_of_the_page_does_what_the_page_says(redis: Redis) -> None:
    """A mark that is written again after its import, and one of the other form, are among those at the end."""
    execution = drifted(vendor="A")
    key, queue = key_of(execution.pk), execution_queue()
    redis.set(key, "")
    redis.sadd("execution:status_outdate", "999:B")
    places = {"queue": 2, "keys": 0}
    lines = iter(LINES)

    def expect(command: str, *outcome: str) -> None:
        line = next(lines)
        assert line.startswith(f"python manage.py {command}"), line
        text = run(line)
        for part in outcome:
            assert part in text, (line, text)

    expect("harbor marks import --dry-run", "2 marks to take, 0 that cannot be read.")
    expect("doctor --only redis", "8 sound.")
    expect("migrate")
    expect("harbor status", "backlog")
    expect("harbor marks import", "Took 2 marks onto the queue.")
    expect("harbor marks import --dry-run --json", '{ "taken": 0, "unreadable": 0 }')
    assert queue.stats().backlog == places["queue"]
    expect("harbor repair drift --full --dry-run")
    assert Execution.objects.get(pk=execution.pk).status == "Running", "a dry run changes nothing"
    expect("harbor pause")
    expect("harbor marks export", "Turned 2 executions into marks of Harbor.")
    assert (redis.exists(key), queue.stats().backlog) == (1, places["keys"])
    expect("harbor unpause")
    expect("harbor marks import", "Took 2 marks onto the queue.")
    assert (redis.exists(key), queue.stats().backlog) == (0, places["queue"])
    assert list(lines) == []
