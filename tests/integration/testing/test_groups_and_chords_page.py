"""docs/groups_and_chords.md: each of its blocks runs, Celery's and ours, and each value is what it says."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from harbor_refresh.testing import eager
from tests import pages

PAGE = pages.read("docs/groups_and_chords.md")


@pytest.fixture(autouse=True)
def jobs_are_eager(database: str) -> Iterator[None]:
    with eager():
        yield


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


def test_every_block_runs_and_every_value_is_right() -> None:
    names: dict[str, Any] = {"__name__": "shop_of_the_page"}
    compared = [one for code in pages.codes(PAGE, "python") for one in run(code, names)]
    assert [(text, value) for text, value, _ in compared] == [(text, said) for text, _, said in compared]
    assert len(compared) == 22


def test_the_table_leads_to_each_part_and_each_part_is_in_it() -> None:
    parts = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in parts]
    assert set(re.findall(r"^\| \[.*?\]\(#([\w-]+)\)", PAGE, re.MULTILINE)) == set(anchors)
