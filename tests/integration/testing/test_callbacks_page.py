"""docs/howto/callbacks_and_webhooks.md: the callbacks of its first example are called."""

import ast
from typing import Any

import pytest
from celery import current_app, shared_task

from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob
from harbor_refresh.testing import worker
from tests import pages
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database")

PAGE = pages.read("docs/howto/callbacks_and_webhooks.md")
said: list[Any] = []


@shared_task(base=TrackedJob, name="callbacks_page.replicate")
def replicate(job: Handle, artifact: str) -> None:
    said.append(artifact)


@shared_task(name="callbacks_page.page")
def page(ended: Any) -> None:
    said.append(f"page {ended.status}")


@shared_task(name="callbacks_page.tidy")
def tidy(ended: Any) -> None:
    said.append(f"tidy {ended.status}")


def test_the_callbacks_of_the_page_are_told_the_end() -> None:
    """Its functions are there before the worker starts, as in a project."""
    names: dict[str, Any] = {"__name__": "shop.of_the_page", "app": current_app, "artifacts": ["alpine", "debian"]}
    names |= {"replicate": replicate, "page": page, "tidy": tidy, "post": lambda *words: said.append(words)}
    example = pages.code(PAGE, "python", "from harbor_refresh import EndedExecution")
    imports, function, start = ast.parse(example).body
    exec(ast.unparse(imports), names)  # noqa: S102
    exec(ast.unparse(function), names)  # noqa: S102
    with worker():
        exec(ast.unparse(start), names)  # noqa: S102
        execution = TrackedExecution.objects.latest("pk")
        assert execution.wait(timeout=60) == "Success"
        wait_for(lambda: len(said) == 4, "the callbacks")
    assert said[:2] == ["alpine", "debian"]
    assert sorted(said[2:], key=str) == [("#done", f"replication {execution.pk} is Success"), "tidy Success"]
