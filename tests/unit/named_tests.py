"""The tests that a page of the documentation names, as `path::test` below tests/, and whether they are there."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
NAME = re.compile(r"`([\w/]+\.py)::(\w+)(?:\[([^\]]+)\])?`")

Named = tuple[str, str, str]


def named_in(page: str) -> list[Named]:
    """Return path, test and case of each; the case is empty if none is named."""
    return [(path, name, case) for path, name, case in NAME.findall(page)]


def texts_of(path: str) -> dict[str, str]:
    """The tests of a file, each with its text and all that is at hand for it: the file's own tables."""
    text = (TESTS / path).read_text(encoding="utf-8")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name: text for node in functions if node.name.startswith("test_")}


def refuse_missing(named: Named) -> None:
    path, name, case = named
    there = texts_of(path)
    assert name in there
    assert not case or re.search(rf'"{re.escape(case)}"|\b{re.escape(case)}\b', there[name]), case
