"""docs/howto/canvases.md: each of its blocks runs, and each value is what it says."""

import ast
from collections.abc import Iterator
from typing import Any

import pytest
from celery import current_app
from django.db import transaction

from harbor_refresh.testing import worker
from tests import pages

PAGE = pages.read("docs/howto/canvases.md")
SETTINGS, TASKS, *EXAMPLES = pages.codes(PAGE, "python")


@pytest.fixture(autouse=True)
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
    """Those of the tasks, which a process registers once."""
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


def test_every_block_runs_and_every_value_is_right(names: dict[str, Any]) -> None:
    compared = [one for code in EXAMPLES for one in run(code, names)]
    assert [(text, value) for text, value, _ in compared] == [(text, said) for text, _, said in compared]
    assert len(compared) == 12


def test_without_the_setting_start_does_not_wait_and_wait_does(names: dict[str, Any]) -> None:
    started, waited, *_ = EXAMPLES[0].splitlines()
    with worker():
        with transaction.atomic():  # no job can have begun
            run(started, names)
            status = names["execution"].status
        compared = run(waited, names)
    assert status == "Running"
    assert compared == [("execution.wait(timeout=60)", "Success", "Success")]
