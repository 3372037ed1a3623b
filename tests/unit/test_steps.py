"""The steps on the way of a change: each is named in the table of its module, and is followed."""

import ast
import re
from pathlib import Path

import pytest

from harbor_refresh.executions.news import steps
from harbor_refresh.tracing.spans import OF_STEP

ROOT = Path(__file__).resolve().parents[2]


def calls() -> dict[str, set[str]]:
    """The steps in the code, each with the names of its facts."""
    found: dict[str, set[str]] = {}
    for package in ("executions", "tasks"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "step":
                    (name,) = node.args
                    assert isinstance(name, ast.Constant)
                    found[str(name.value)] = {one.arg or "" for one in node.keywords}
    return found


def test_each_step_has_its_row_with_its_facts_and_is_followed() -> None:
    rows = re.findall(r"^\| `(\w+)` +\|[^|]+\|([^|]+)\|", steps.__doc__ or "", re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", facts)) for name, facts in rows} == calls()
    assert OF_STEP.keys() == calls().keys()


def test_without_a_follower_a_step_is_one_shared_value_and_work_stays_itself() -> None:
    first, second = steps.step("report", source="api"), steps.step("mark", members=[])
    assert first is second
    with first as note, second:
        note(applied=1)
    with pytest.raises(ZeroDivisionError), steps.step("mark", members=[]):
        raise ZeroDivisionError

    def work() -> None: ...

    assert steps.carried(work) is work
