"""How-to pages: the blocks of their sections run as they are written, their jobs in a worker of a test. So does
the example of the README.

What a section takes for granted is what a project has: the work of a job, a user, an address.
"""

import ast
import asyncio
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from celery import current_app, shared_task
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import Context, Template
from django.test import Client, RequestFactory
from pytest_django import Settings
from redis import Redis

import harbor_refresh
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.models import Job, Limit
from harbor_refresh.testing import worker
from tests import pages
from tests.integration.concurrency import in_background, transaction_held_open
from tests.integration.database_state import deadlocks_so_far, waiting_for_locks
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database")

JOBS, README = pages.read("docs/howto/jobs.md"), pages.read("README.md")
CALLBACKS = pages.read("docs/howto/callbacks_and_webhooks.md")
LIMITS, BATCH = pages.read("docs/howto/limits.md"), pages.read("docs/howto/stop_and_retry.md")
said: list[Any] = []
numbers = count()


@shared_task(base=TrackedJob, name="jobs_page.replicate")
def replicate(job: Handle, artifact: str) -> None:
    said.append(artifact)


@shared_task(base=TrackedJob, name="jobs_page.checks_in")
def checks_in(job: Handle, code: str) -> None:
    checked: list[tuple[Any, Any]] = []
    job.check_in = lambda *args, **kwargs: checked.append((args, kwargs))  # type: ignore[method-assign]
    exec(code, {"job": job})  # noqa: S102
    said.extend(checked)


@shared_task(name="jobs_page.page")
def page(ended: Any) -> None:
    said.append(f"page {ended.status}")


@shared_task(name="jobs_page.tidy")
def tidy(ended: Any) -> None:
    said.append(f"tidy {ended.status}")


def say(*words: str) -> None:
    said.append(words)


class Section:
    """The blocks of a section, and the names that they have together. Its functions are there before a worker
    starts, as in a project, if the test asks for them; `run` runs the rest of a block."""

    def __init__(self, page: str, title: str = "", /, *, with_functions: bool = True, **given: Any) -> None:
        """Without a title, they are those before the first section."""
        text = pages.section(page, title) if title else page.partition("\n## ")[0]
        self.blocks = pages.codes(text, "python")
        ours = {name: getattr(harbor_refresh, name) for name in harbor_refresh.__all__}
        known = {"shared_task": shared_task, "replicate": replicate, "artifacts": ["alpine", "debian"]}
        module = f"shop.section_{next(numbers)}"  # a task is registered once under a name
        self.names: dict[str, Any] = {"__name__": module, **ours, **known, **given}
        for code in self.blocks if with_functions else ():
            self._run(code, functions=True)

    def run(self, number: int = 0) -> None:
        self._run(self.blocks[number], functions=False)

    def _run(self, code: str, *, functions: bool) -> None:
        module = ast.parse(code)
        module.body = [one for one in module.body if _is_function(one) == functions]
        exec(compile(module, "docs/howto", "exec"), self.names)  # noqa: S102


def _is_function(one: ast.stmt) -> bool:
    return isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)


@pytest.fixture(autouse=True)
def nothing_is_said() -> None:
    said.clear()


def latest() -> TrackedExecution:
    return TrackedExecution.objects.latest("pk")


def ended(execution: TrackedExecution) -> tuple[str, dict[str, int]]:
    return execution.wait(timeout=60), execution.progress().counts


def test_the_example_of_the_readme_runs() -> None:
    section = Section(README, app=current_app)
    with worker():
        section.run()
        assert section.names["execution"].progress().counts == {"Success": 2}


def test_the_callbacks_of_the_page_are_told_the_end() -> None:
    section = Section(CALLBACKS, "Callbacks of one execution", app=current_app, post=say, page=page, tidy=tidy)
    with worker():
        section.run()
        assert ended(latest()) == ("Success", {"Success": 2})
        wait_for(lambda: len(said) == 4, "the callbacks")
    assert said[:2] == ["alpine", "debian"]
    assert sorted(said[2:], key=str) == [("#done", f"replication {latest().pk} is Success"), "tidy Success"]


def test_a_job_copies_layers_and_is_started_and_awaited() -> None:
    section = Section(
        JOBS, layers_of=lambda artifact: [f"{artifact}:{n}" for n in range(2)], copy_layer=said.append
    )
    with worker():
        section.run(1)
    assert section.names["execution"].status == "Success"
    assert sorted(said) == sorted(f"{one}:{n}" for one in ("alpine", "debian", "nginx") for n in range(2))


def test_a_batch_is_stopped_and_resumed() -> None:
    execution = start("SCAN", jobs=[replicate.s("a")])
    Section(BATCH, execution=execution).run()
    assert execution.status == "Running"
    with worker():
        assert ended(execution) == ("Success", {"Success": 1})


def test_the_rest_is_stopped_when_a_job_has_failed() -> None:
    section = Section(BATCH, "When a job fails")
    with worker():
        section.run()
        assert ended(latest()) == ("Success", {"Success": 2})


def test_a_registered_type_is_an_argument_of_a_job() -> None:
    names = {name: getattr(harbor_refresh, name) for name in harbor_refresh.__all__}
    names |= {"__name__": __name__, "shared_task": shared_task}
    types, call = pages.codes(pages.section(JOBS, "Arguments"), "python")
    exec(types, names)  # noqa: S102
    with worker():
        exec(call, names)  # noqa: S102
        assert ended(latest()) == ("Success", {"Success": 1})
    assert [one.value for one in latest().results()] == ["north: 2 x 3"]


def test_an_asynchronous_view_starts_and_awaits_an_execution() -> None:
    given = {"HttpRequest": HttpRequest, "JsonResponse": JsonResponse}
    section = Section(JOBS, "`async def`", **given)
    with worker():
        answer = async_to_sync(section.names["mirror"])(RequestFactory().get("/"))
    assert answer.content == b'{"status": "Success", "counts": {"Success": 2}}'
    assert said == ["a", "b"]


def test_a_job_checks_in_by_text_by_a_bar_or_by_both() -> None:
    with worker():
        execution = start("SCAN", jobs=[checks_in.s(Section(JOBS, "Progress").blocks[0])])
        assert ended(execution) == ("Success", {"Success": 1})
    layer = (("layer 3 of 7",), {"done": 3, "of": 7})
    assert said == [layer, (("verifying",), {}), ((), {"done": 4, "of": 7})]


def test_results_are_printed_in_the_order_of_the_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    section = Section(JOBS, "Results and tracebacks", size_of=len)
    section.names["artifacts"] = ["alpine", "nginx"]
    with worker():
        section.run()
    printed = capsys.readouterr().out.splitlines()
    jobs = Task.objects.order_by("pk").values_list("pk", flat=True)
    assert printed == [
        f"{pk} {section.names['measure'].name} {{'bytes': {size}}} " for pk, size in zip(jobs, (6, 5), strict=True)
    ]


def test_a_limit_of_the_page_is_declared_and_has_its_key() -> None:
    section = Section(LIMITS, "Concurrency and rate")
    section.names["copy"].run = lambda job, artifact, *, registry: said.append(registry)
    with worker():
        execution = start("SCAN", jobs=[section.names["copy"].s(n, registry="a-registry") for n in range(3)])
        assert ended(execution) == ("Success", {"Success": 3})
    found = Limit.objects.get(name=section.names["copy"].name)
    assert (found.concurrency, found.rate, found.per) == (10, 100, 60)
    assert set(Job.objects.values_list("limit_key", flat=True)) == {"a-registry"}


def test_executions_take_turns_by_weight_and_by_tenant() -> None:
    jobs = {name: [replicate.s(name)] for name in ("nightly", "urgent", "theirs")}
    with worker():
        Section(LIMITS, "Turns", **jobs).run()
        wait_for(lambda: len(said) == 3, "the three to run")
        assert ended(latest()) == ("Success", {"Success": 1})
    assert list(Job.objects.order_by("pk").values_list("tenant", flat=True)) == [None, None, "tenant 7"]


def test_the_metadata_of_a_job_is_stored_with_its_task() -> None:
    layers = [SimpleNamespace(digest=f"sha256:{number}", number=number) for number in (7, 8)]
    with worker():
        Section(JOBS, "Metadata", layers=layers).run()
        assert ended(latest()) == ("Success", {"Success": 2})
    assert said == ["sha256:7", "sha256:8"]
    assert list(Task.objects.order_by("pk").values_list("extra_attrs", flat=True)) == [{"layer": 7}, {"layer": 8}]


def test_the_progress_is_at_the_addresses_of_a_project_and_in_its_template(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = Section(JOBS, "Progress", urlpatterns=[])
    section.run(1)
    urls = ModuleType("urls_of_the_page")
    urls.__dict__["urlpatterns"] = section.names["urlpatterns"]
    urls.__dict__["handler404"] = lambda *_, **__: HttpResponse(status=404)  # ours names the address of the admin
    monkeypatch.setitem(sys.modules, urls.__name__, urls)
    settings.ROOT_URLCONF = urls.__name__
    settings.MIDDLEWARE = [one for one in settings.MIDDLEWARE if one.startswith("django.contrib.")]
    with worker():
        execution = start("replication", jobs=[replicate.s("a")])
        execution.wait(timeout=60)
    may = User.objects.create_user("may")
    monkeypatch.setattr(User, "has_perm", lambda user, name, *_: name == "shop.view_mirror" and user == may)
    place = f"/mirrors/{execution.pk}/"
    client, stranger = Client(), Client()
    client.force_login(may)
    stranger.force_login(User.objects.create_user("stranger"))

    assert client.get(place).json()["progress"] == 1
    events = client.get(f"{place}events/")
    assert b"event: end" in b"".join(events)  # type: ignore[arg-type]
    assert [stranger.get(one).status_code for one in (place, f"{place}events/")] == [404, 404]
    (template,) = pages.codes(pages.section(JOBS, "Progress"), "django")
    shown = Template(template).render(Context({"mirror": {"execution": execution}}))
    assert shown.count('data-status="Success"') == 2
    assert shown.count('data-execution-events="/mirrors/17/events/"') == 1


def test_a_producer_adds_pages_and_closes_and_a_job_adds_what_it_finds() -> None:
    links = {"/": ["/a", "/b"], "/a": ["/c"]}
    section = Section(
        BATCH,
        "Let a batch grow",
        registry="registry",
        pages_of=lambda registry: [["a", "b"], ["c"]],
        links_of=lambda address: said.append(address) or links.get(address, []),
    )
    with worker():
        section.run()
        assert ended(section.names["execution"]) == ("Success", {"Success": 3})
        assert section.names["execution"].add([replicate.s("again")], once="page 1") == 0
        assert ended(start("CRAWL", jobs=[section.names["crawl"].s("/")])) == ("Success", {"Success": 4})
    assert said == ["a", "b", "c", "/", "/a", "/b", "/c"]


def test_two_transactions_that_add_to_the_same_executions_do_not_deadlock(redis: Redis) -> None:
    """Each gets them in another order. A third one holds the first execution until both wait."""
    first, second = (start("REPLICATION", jobs=[replicate.s("a")]) for _ in range(2))
    deadlocks = deadlocks_so_far()

    def add_to(*executions: TrackedExecution) -> Callable[[], None]:
        given = {"transaction": transaction, "executions": executions}
        return partial(Section(BATCH, "Let a batch grow", with_functions=False, **given).run, 2)

    with (
        transaction_held_open(lambda: first.add([replicate.s("b")])) as commit,
        in_background(add_to(first, second)) as one,
    ):
        wait_for(lambda: waiting_for_locks() == 1, "one to wait for the first execution")
        with in_background(add_to(second, first)) as another:
            wait_for(lambda: waiting_for_locks() == 2, "the other to wait behind it")
            commit()
            one(), another()
    assert [one.progress().total for one in (first, second)] == [6, 5]
    assert deadlocks_so_far() == deadlocks


def test_a_job_starts_a_child_of_its_execution_for_each_repository() -> None:
    class Repository(list[str]):
        name = "library/alpine"

    section = Section(BATCH, "Batches within batches", repositories_of=lambda project: [Repository("ab")])
    with worker():
        execution = start("MIRROR", jobs=[section.names["mirror_project"].s("library")])
        assert ended(execution) == ("Success", {"Success": 2})
    section.names["execution"] = execution
    section.run(1)
    assert execution.progress(deep=True).counts == {"Success": 3}
    assert said == ["a", "b"]


def test_an_execution_of_one_name_is_started_once(capsys: pytest.CaptureFixture[str]) -> None:
    section = Section(LIMITS, "Once")
    with worker():
        section.run()
        first = section.names["execution"]
        assert (capsys.readouterr().out, ended(first)) == ("", ("Success", {"Success": 2}))
        section.run()
    assert section.names["execution"] == first
    assert capsys.readouterr().out == f"execution {first.pk} was started before\n"


def test_an_execution_with_a_deadline_ends_before_it() -> None:
    with worker():
        Section(LIMITS, "A deadline").run()
        assert ended(latest()) == ("Success", {"Success": 2})


def test_an_async_def_is_a_job_that_uses_the_database() -> None:
    async def download(url: str) -> str:
        await asyncio.sleep(0)
        return f"body of {url}"

    async def acreate(**values: str) -> None:
        said.append((values, await Task.objects.acount()))

    pages_of = SimpleNamespace(objects=SimpleNamespace(acreate=acreate))
    section = Section(
        JOBS, "`async def`", asyncio=asyncio, download=download, Page=pages_of, HttpRequest=None, JsonResponse=None
    )
    with worker():
        execution = start("FETCH", jobs=[section.names["fetch"].s("a")])
        assert ended(execution) == ("Success", {"Success": 1})
    assert said == [({"url": "a", "body": "body of a"}, 1)]


# docs/howto/canvases.md: each of its blocks runs, and each value is what it says

CANVASES = pages.read("docs/howto/canvases.md")
SETTINGS, TASKS, *EXAMPLES = pages.codes(CANVASES, "python")


@pytest.fixture
def the_settings_are_those_of_the_page(database: str) -> Iterator[None]:
    given: dict[str, Any] = {}
    exec(SETTINGS, {}, given)  # noqa: S102
    given = {name.removeprefix("CELERY_").lower(): value for name, value in given.items()}
    before = {name: current_app.conf.get(name) for name in given}
    current_app.conf.update(given)
    yield
    current_app.conf.update(before)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Those of the tasks of docs/howto/canvases.md, which a process registers once."""
    found: dict[str, Any] = {"__name__": "shop_of_the_page"}
    run(TASKS, found)
    return found


def run(code: str, names: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Run a block. Return the expressions whose value a comment says, with their value and that."""
    compared = []
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        line = lines[(statement.end_lineno or 0) - 1]
        text = ast.unparse(statement)
        if isinstance(statement, ast.Expr) and (said := line.partition("  # ")[2]):
            compared.append((text, eval(text, names), eval(said, names)))  # noqa: S307
        else:
            exec(text, names)  # noqa: S102
    return compared


@pytest.mark.usefixtures("the_settings_are_those_of_the_page")
def test_every_block_runs_and_every_value_is_right(names: dict[str, Any]) -> None:
    compared = [one for code in EXAMPLES for one in run(code, names)]
    assert [(text, value) for text, value, _ in compared] == [(text, said) for text, _, said in compared]
    assert len(compared) == 10


@pytest.mark.usefixtures("the_settings_are_those_of_the_page")
def test_without_the_setting_start_does_not_wait_and_wait_does(names: dict[str, Any]) -> None:
    started, waited, *_ = EXAMPLES[0].splitlines()
    with worker():
        with transaction.atomic():  # no job can have begun
            run(started, names)
            status = names["execution"].status
        compared = run(waited, names)
    assert status == "Running"
    assert compared == [("execution.wait(timeout=60)", "Success", "Success")]
