"""Canvases and graphs as one execution: which job gets which results, as in Celery; and what a failure does.

The canvases run twice, with plain tasks by Celery itself and with jobs by `start`, both in this process.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from celery import chain, chord, current_app, group, shared_task

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, job, needs, start
from harbor_refresh.tasks.jobs.starting import canvas
from harbor_refresh.tasks.models.job import Job, Need
from harbor_refresh.testing import eager
from tests import pages

pytestmark = pytest.mark.usefixtures("database")

failing: set[Any] = set()


@shared_task(name="canvas.plain")
def plain(*words: Any) -> Any:
    return "".join(map(written, words))


@shared_task(base=TrackedJob, name="canvas.tracked", keep_result=True)
def tracked(job: Handle, *words: Any) -> Any:
    if failing.intersection(map(str, words)):
        raise ValueError("it fails")
    return "".join(map(written, words))


@shared_task(base=TrackedJob, name="canvas.alone", keep_result=True, unique=True)
def alone(job: Handle, word: str) -> str:
    return word


def written(word: Any) -> str:
    """A list is told from what is in it."""
    return f"[{','.join(map(written, word))}]" if isinstance(word, list) else str(word)


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    failing.clear()
    with eager():
        yield


@contextmanager
def always_eager() -> Iterator[None]:
    before = current_app.conf.task_always_eager
    current_app.conf.task_always_eager = True
    yield
    current_app.conf.task_always_eager = before


def returned(execution: TrackedExecution) -> list[str]:
    return [one.value for one in execution.results()]


#: Each canvas of the page, by its text, with what its last jobs return.
CANVASES = dict(
    re.findall(r"^\| `(.*\bt\.s.*)` \| `(.*)` \|$", pages.read("docs/howto/canvases.md"), re.MULTILINE)
)


@pytest.mark.parametrize("text", CANVASES)
def test_a_canvas_gives_what_celery_gives_and_the_page_says(text: str) -> None:
    said = eval(CANVASES[text])  # noqa: S307
    theirs, ours = (
        eval(text.replace("\\|", "|"), {"chain": chain, "chord": chord, "group": group, "t": one})  # noqa: S307
        for one in (plain, tracked)
    )
    with always_eager():
        assert theirs.apply_async().get() == said
    execution = start("BUILD", jobs=ours)
    assert execution.status == "Success"
    last = returned(execution)[-len(said) :] if isinstance(said, list) else returned(execution)[-1]
    assert last == said


def test_the_page_has_each_kind_of_canvas() -> None:
    assert len(CANVASES) == 19


def test_jobs_of_a_list_and_of_a_group_by_itself_need_each_other_not() -> None:
    failing.add("a")
    for jobs in ([tracked.s("a"), tracked.s("b")], group(tracked.s("a"), tracked.s("b"))):
        execution = start("BUILD", jobs=jobs)
        assert (execution.status, returned(execution)) == ("Error", ["b"])
    assert not Need.objects.exists()


def test_a_job_with_needs_gets_the_list_of_their_results_in_its_order() -> None:
    a, b = job(tracked.s("a")), job(tracked.s("b"))
    both = job(tracked.s("c"), needs=[b, a])
    last = job(tracked.si("d"), needs=[both])
    execution = start("BUILD", jobs=[last, a])
    assert sorted(returned(execution)) == ["[b,a]c", "a", "b", "d"], "what is needed is started, too, and once"


def test_one_job_may_be_shared_by_many_that_need_it() -> None:
    """procrastinate#1198, celery#893: a graph in which one predecessor is shared."""
    first = job(tracked.s("a"), name="first")
    middle = [job(tracked.s(one), needs=["first"]) for one in "bcd"]
    last = job(tracked.s("e"), needs=middle)
    assert returned(start("BUILD", jobs=[first, *middle, last]))[-1] == "[[a]b,[a]c,[a]d]e"


def test_a_canvas_may_need_others_and_be_needed() -> None:
    fetch = job(group(tracked.s("a"), tracked.s("b")))
    build = job(tracked.s("c") | tracked.s("d"), needs=[fetch])
    assert returned(start("BUILD", jobs=[job(tracked.s("e"), needs=[build])]))[-1] == "[[a,b]cd]e"


def ends(execution: Execution) -> dict[str, tuple[str, str]]:
    rows = Job.objects.filter(task__execution=execution).select_related("task")
    return {one.args[-1]: (one.task.status, one.task.status_message) for one in rows}


def test_what_needs_a_job_that_fails_is_stopped_and_names_it_and_runs_again_with_it() -> None:
    failing.add("a")
    execution = start(
        "BUILD", jobs=[chord([tracked.s("a"), tracked.s("b")], tracked.s("c") | tracked.s("d")), tracked.s("x")]
    )
    first = Job.objects.get(args=["a"])
    why = f"it needs canvas.tracked (task {first.pk}), which has ended as Error"
    assert execution.status == "Error"
    assert ends(execution) == {
        "a": ("Error", "ValueError: it fails"),
        "b": ("Success", ""),
        "c": ("Stopped", why),
        "d": ("Stopped", why),
        "x": ("Success", ""),
    }
    failing.clear()
    assert execution.retry_failed() == 3, "b and x are left alone"
    assert (execution.status, returned(execution)) == ("Success", ["a", "b", "[a,b]c", "[a,b]cd", "x"])


def test_a_job_that_needs_others_even_if_failed_runs_whatever_they_do() -> None:
    failing.add("a")
    a, b = job(tracked.s("a")), job(tracked.s("b"))
    clean_up = job(tracked.s("c"), needs=needs(a, b, even_if_failed=True))
    publish = job(tracked.s("d"), needs=[a])
    behind = job(tracked.s("e"), needs=[*needs(publish, even_if_failed=True), clean_up])
    execution = start("BUILD", jobs=[clean_up, behind])
    assert {name: status for name, (status, _) in ends(execution).items()} == {
        "a": "Error",
        "b": "Success",
        "c": "Success",
        "d": "Stopped",
        "e": "Success",
    }
    assert sorted(returned(execution)) == ["[None,[None,b]c]e", "[None,b]c", "b"]


def test_what_needs_a_stopped_and_a_failed_job_waits_for_neither_alone() -> None:
    """It would wait for good for the one that does not run again."""
    failing.add("a")
    execution = start("BUILD", jobs=[chord([tracked.s("a"), tracked.s("b")], tracked.s("c"))])
    failing.clear()
    execution.tasks.filter(job__args=["b"]).update(status="Stopped")
    assert execution.retry_failed() == 1, "a alone: c needs b, which was stopped"
    assert execution.resume_stopped() == 2
    assert (execution.status, returned(execution)) == ("Success", ["a", "b", "[a,b]c"])


def nested(levels: int) -> Any:
    found: Any = group(tracked.s("a"), tracked.s("b"))
    for _ in range(levels):
        found = group(found, tracked.s("c"))
    return found


def with_arguments(several: Any) -> Any:
    several.args = ("x",)
    return several


a, b = job(tracked.s("a"), name="a"), job(tracked.s("b"), name="b", needs=["a"])
REFUSED: dict[str, tuple[Any, str]] = {
    "a circle": (
        [job(tracked.s("a"), name="a", needs=["b"]), b],
        "jobs need each other in a circle: (a <- b <- a|b <- a <- b)",
    ),
    "a job that needs itself": ([job(tracked.s("a"), name="a", needs=["a"])], "in a circle: a <- a"),
    "a name that is not there": ([job(tracked.s("c"), needs=["d"])], "needs 'd', and no job here has that name"),
    "a name twice": ([a, job(tracked.s("c"), name="a")], "two jobs have the name 'a'"),
    "one twice": ([job(tracked.s("c"), needs=[a, "a"])], "needs the same job twice"),
    "a signature": ([job(tracked.s("c"), needs=[tracked.s("d")])], "or names of jobs, and got canvas.tracked"),
    "one that is no list": ([job(tracked.s("c"), needs=a)], "needs takes a list of jobs, and got "),  # type: ignore[arg-type]
    "a number as a name": ([job(tracked.s("c"), name=5)], "name takes text of at most 200 characters, and got 5"),  # type: ignore[arg-type]
    "a deep nest": (nested(5_000), r"those that begin with canvas.tracked\('a'\) are nested too deep"),
    "a deep nest with a name": ([job(nested(5_000), name="deep")], "begin with canvas.tracked"),
    "a plain task": ([job(plain.s("c"))], "canvas.plain is no tracked job"),
    "an empty group": ([chord([], tracked.s("b"))], "got an empty group among them"),
    "options of a chord": ([chord([tracked.s("a")], tracked.s("b")).set(queue="x")], "got queue on all"),
    "arguments of a chord": (chord([tracked.s("a")], tracked.s("b")).clone(("x",)), "got arguments on all"),
    "arguments by name": (chord([tracked.s("a")], tracked.s("b"), kwargs={"x": 1}), "got arguments on all"),
    "arguments of a chain": (with_arguments(tracked.s("a") | tracked.s("b")), "got arguments on all"),
    "arguments of a group": (with_arguments(group(tracked.s("a"))), "got arguments on all"),
    "a map": (tracked.map(["a"]), r"celery.map: .*, as in group\(canvas.tracked.s\(item\) for item in items\)"),
    "a starmap": (tracked.starmap(["a"]), r"celery.starmap: .*canvas.tracked.s\(\*item\)"),
    "chunks": ([tracked.chunks(["a"], 10)], r"celery.chunks: .*canvas.tracked.s\(\*item\)"),
    "too few arguments": ([group(alone.s("a"), alone.s("b")) | alone.si()], "job canvas.alone: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_order_can_run_is_refused_by_name_and_nothing_is_written(name: str) -> None:
    jobs, why = REFUSED[name]
    with pytest.raises(Refused, match=why):
        start("BUILD", jobs=jobs)
    assert not Execution.objects.exists()


def test_two_large_groups_one_behind_the_other_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "MOST_NEEDS", 8)
    groups = [group(tracked.s(one) for one in range(3))] * 2
    with pytest.raises(Refused, match="put a job between two large groups"):
        start("BUILD", jobs=groups[0] | groups[1])
    assert start("BUILD", jobs=groups[0] | tracked.s("between") | groups[1]).status == "Success"
    with pytest.raises(Refused, match="put a job between two large groups"):
        start(
            "BUILD", jobs=[job(tracked.s("c"), needs=[job(tracked.s(one)) for one in range(3)]) for _ in range(3)]
        )
