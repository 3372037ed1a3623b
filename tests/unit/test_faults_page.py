"""docs/faults.md names existing tests for each failure of other systems."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)(?:\[([^\]]+)\])?`", PAGE)


def texts_of(path: Path) -> dict[str, str]:
    """The tests of a file, each with its text and all that is at hand for it: the file's own tables."""
    text = path.read_text(encoding="utf-8")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name: text for node in functions if node.name.startswith("test_")}


@pytest.mark.parametrize(("path", "name", "case"), NAMED)
def test_every_test_that_is_named_exists(path: str, name: str, case: str) -> None:
    there = texts_of(ROOT / "tests" / path)
    assert name in there
    assert not case or re.search(rf'"{re.escape(case)}"|\b{re.escape(case)}\b', there[name]), case


def test_every_row_has_a_test_and_only_tests_are_quoted() -> None:
    ways = [row for row in ROWS if not row.startswith("| what went wrong")]
    assert len(ways) >= 20
    for row in ways:
        assert len(row.strip("| ").split(" | ")) == 3, row
        assert ".py::test_" in row.split(" | ")[2], row
    assert PAGE.count("`") == 2 * len(NAMED) + 2
