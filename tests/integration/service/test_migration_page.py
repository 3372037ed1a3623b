"""docs/howto/from_harbor_marks.md: its commands, in their order, lead from Harbor's keys to the queue and back."""

import shlex
from typing import Any

import pytest

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.pipeline.legacy_marks import legacy_marks
from harbor_refresh.tasks.queue import execution_queue
from tests import pages
from tests.integration.command_output import said
from tests.integration.old_release import key_of
from tests.integration.redis_state import PREFIX, Redis
from tests.integration.sample_executions import drifted

PAGE = pages.read("docs/howto/from_harbor_marks.md")
LINES = pages.lines(PAGE)
REST = f"{PREFIX}legacy_rest"


def run(line: str, redis: Redis) -> str:
    """Its output in one line. It fails the test if it ends with another code than 0."""
    words = shlex.split(line, comments=True)
    if words[0] == "redis-cli":
        assert words[1:3] == ["-u", "$REDIS_URL"], line
        return str(asked(redis, words[3:]))
    assert words[:2] == ["python", "manage.py"], line
    return " ".join(said(*words[2:]).split())


def asked(redis: Redis, words: list[str]) -> Any:
    if words[0] == "--scan":
        assert (words[1], words[3:]) == ("--pattern", ["|", "wc", "-l"]), words
        return len(list(redis.scan_iter(match=words[2])))
    return redis.execute_command(*words)


@pytest.mark.usefixtures("database")
def test_each_command_of_the_page_does_what_the_page_says(redis: Redis) -> None:
    """A mark of each form. Where the page says that the workers take the marks, a tick runs."""
    execution = drifted(vendor="A")
    key, queue = key_of(execution.pk), execution_queue()
    redis.set(key, "")
    redis.sadd("execution:status_outdate", "999:B")
    places = {"queue": 2, "keys": 0}
    lines = iter(LINES)

    def expect(command: str, *outcome: str) -> None:
        line = next(lines)
        assert line.startswith(command), line
        text = run(line, redis)
        for part in outcome:
            assert part in text, (line, text)

    def counts() -> list[str]:
        """Of Harbor's keys, and of the members of its set, by the commands of step 1."""
        return [run(line, redis) for line in LINES[:2]]

    assert counts() == [run(next(lines), redis) for _ in range(2)] == ["1", "1"]
    expect("python manage.py doctor --only redis", "8 sound.")
    expect("python manage.py migrate")
    expect("python manage.py harbor status", "backlog")
    assert legacy_marks().look() == 2
    assert counts() == ["0", "0"]
    assert queue.stats().backlog == places["queue"]
    expect("python manage.py harbor repair drift --full --dry-run")
    assert Execution.objects.get(pk=execution.pk).status == "Running", "a dry run changes nothing"
    expect("python manage.py harbor pause")
    expect("python manage.py harbor marks export", "Turned 2 executions into marks of Harbor.")
    assert (redis.exists(key), queue.stats().backlog) == (1, places["keys"])
    expect("python manage.py harbor unpause")
    redis.delete(REST)  # as if the time until the next look had passed
    assert legacy_marks().look() == 2
    assert (redis.exists(key), queue.stats().backlog) == (0, places["queue"])
    assert list(lines) == []
