"""docs/jobs.md and the README: their examples run, with eager jobs. What a project has besides them stands here;
tests/acceptance/test_own_project.py follows the sections for a project of one's own."""

from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from celery import current_app, shared_task
from django.contrib.auth.models import Permission, User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import Context, Template
from django.test import Client
from pytest_django import Settings

import harbor_refresh
from executions.models import Execution
from harbor_refresh.testing import eager
from tasks.jobs import Handle, TrackedJob, start
from tests import pages

PAGE, README = pages.read("docs/jobs.md"), pages.read("README.md")
#: The module of a project: the public names, its Celery app, and what the examples define.
SHOP: dict[str, Any] = {name: getattr(harbor_refresh, name) for name in harbor_refresh.__all__}
SHOP |= {"__name__": "shop.of_the_page", "app": current_app}


@pytest.fixture(autouse=True)
def jobs_are_eager(database: str) -> Iterator[None]:
    with eager():
        yield


@pytest.fixture
def copied() -> list[str]:
    """What the job of the first example has copied. The example is defined once, as in a module."""
    found: list[str] = []
    if "replicate" not in SHOP:
        run("from harbor_refresh import Handle")
    SHOP.update(layers_of=lambda artifact: [f"{artifact}1", f"{artifact}2"], copy=found.append)
    return found


def run(beginning: str, **names: Any) -> None:
    """Run the block that begins so, in the module of the project."""
    SHOP.update(names)
    exec(pages.code(PAGE, "python", beginning), SHOP)  # noqa: S102


def statuses(vendor: str) -> list[str]:
    return list(Execution.objects.filter(vendor_type=vendor).order_by("pk").values_list("status", flat=True))


def test_the_first_example_runs_and_its_execution_is_asked_as_the_page_says(copied: list[str]) -> None:
    run('execution = start("REPLICATION", vendor_id=7, jobs=[', artifacts=["a", "b"])
    run("execution.progress()")
    assert (copied, SHOP["execution"].status) == (["a1", "a2", "b1", "b2"], "Success")


def test_the_example_of_the_readme_runs() -> None:
    shop = SHOP | {"__name__": "shop.of_the_readme", "artifacts": ["a", "b"]}
    exec(pages.code(README, "python"), shop)  # noqa: S102
    assert shop["execution"].progress().counts == {"Success": 2}


@shared_task(base=TrackedJob, name="shop.says")
def says(job: Handle) -> None:
    exec(pages.code(PAGE, "python", "job.check_in"), {"job": job})  # noqa: S102


def test_each_form_of_a_check_in_is_taken() -> None:
    assert start("SAYS", jobs=[says.s()]).status == "Success"


def test_the_results_of_the_page_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run("@app.task(base=TrackedJob, keep_result=True)", artifacts=["a", "bb"], size_of=len)
    printed = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert printed == [f"shop.of_the_page.measure {{'bytes': {size}}} " for size in (1, 2)]


@shared_task(base=TrackedJob, name="shop.copy_layer")
def copy_layer(job: Handle, digest: str) -> None:
    pass


def test_the_metadata_of_the_page_are_those_of_the_tasks() -> None:
    layers = [SimpleNamespace(digest=f"sha256:{number}", number=number) for number in (7, 8)]
    run('start("REPLICATION", jobs=[copy.s(', copy=copy_layer, layers=layers)
    tasks = Execution.objects.get().tasks.order_by("pk")
    assert list(tasks.values_list("extra_attrs", flat=True)) == [{"layer": 7}, {"layer": 8}]


def test_the_asynchronous_view_answers_with_the_end(copied: list[str]) -> None:
    run("async def mirror(", HttpRequest=HttpRequest, JsonResponse=JsonResponse)
    answer = async_to_sync(SHOP["mirror"])(HttpRequest())
    assert answer.content == b'{"status": "Success", "counts": {"Success": 2}}'
    assert len(copied) == 4


def test_the_addresses_of_the_page_let_in_users_with_the_permission(copied: list[str], settings: Settings) -> None:
    """The permission is one that there is. The page for 404 is the project's."""
    urls = ModuleType("shop.urls")
    vars(urls).update(urlpatterns=[], handler404=lambda request, exception: HttpResponse(status=404))
    code = pages.code(PAGE, "python", "# shop/urls.py").replace("shop.view_mirror", "harbor_executions.view_task")
    exec(code, vars(urls))  # noqa: S102
    settings.ROOT_URLCONF = urls
    settings.MIDDLEWARE = [one for one in settings.MIDDLEWARE if one.startswith("django.")]
    execution = start("REPLICATION", jobs=[SHOP["replicate"].s("a")])
    stranger, viewer = (User.objects.create(username=name) for name in ("stranger", "viewer"))
    viewer.user_permissions.add(Permission.objects.get(codename="view_task"))
    codes = []
    for user in (stranger, viewer):
        client = Client()
        client.force_login(user)
        codes.append(client.get(f"/mirrors/{execution.pk}/").status_code)
    assert codes == [404, 200]


def test_the_template_of_the_page_shows_the_progress(copied: list[str]) -> None:
    mirror = SimpleNamespace(execution=start("REPLICATION", jobs=[SHOP["replicate"].s("a")]))
    shown = Template(pages.code(PAGE, "django")).render(Context({"mirror": mirror}))
    assert shown.count('data-status="Success"') == 2
    assert shown.count("/mirrors/17/events/") == 1


def test_the_open_execution_of_the_page_gets_every_page_and_is_closed(copied: list[str]) -> None:
    run(
        'execution = start("REPLICATION", vendor_id=7, open=True',
        registry="r",
        pages_of=lambda registry: [["a"], ["b", "c"]],
    )
    execution = SHOP["execution"]
    assert (execution.wait(timeout=60), execution.progress().counts) == ("Success", {"Success": 3})


def test_the_job_of_the_page_adds_what_it_finds() -> None:
    links = {"/": ["/a", "/b"], "/a": ["/c"]}
    run("@app.task(base=TrackedJob)\ndef crawl(", links_of=lambda address: links.get(address, []))
    execution = start("CRAWL", jobs=[SHOP["crawl"].s("/")])
    assert (execution.status, execution.progress().counts) == ("Success", {"Success": 4})


class Repository(list[str]):
    name = "library/app"


def test_the_job_of_the_page_starts_children(copied: list[str]) -> None:
    run(
        "@app.task(base=TrackedJob)\ndef mirror_project(",
        repositories_of=lambda project: [Repository(["a", "b"])],
    )
    parent = start("PROJECT", jobs=[SHOP["mirror_project"].s("library")])
    assert (parent.status, parent.progress().total) == ("Success", 2)
    assert statuses("REPLICATION") == ["Success"]
    assert copied == ["a1", "a2", "b1", "b2"]


@shared_task(name="shop.page")
def page(ended: Any) -> None:
    raise AssertionError("no job has failed")


@shared_task(name="shop.tidy")
def tidy(ended: Any) -> None:
    SHOP["posted"].append(("tidied", ended.status))


def test_the_callbacks_of_the_page_are_told_of_the_end(copied: list[str]) -> None:
    """The page leaves out the jobs."""
    posted: list[tuple[str, str]] = []
    code = pages.code(PAGE, "python", "@app.task\ndef publish(")
    assert "jobs=[...]" in code
    SHOP.update(post=lambda *words: posted.append(words), page=page, tidy=tidy, posted=posted)
    exec(code.replace("jobs=[...]", 'jobs=[replicate.s("a")]'), SHOP)  # noqa: S102
    number = Execution.objects.get().pk
    assert sorted(posted) == [("#done", f"replication {number} is Success"), ("tidied", "Success")]
