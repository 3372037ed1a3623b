"""docs/security.md: each guard has a test that exists, each setting that it names is read, and what it says of
messages is so."""

import ast
import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.unit.named_tests import NAME, Named, named_in, refuse_missing
from tests.unit.test_docs import variables

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
PACKAGES = ("executions", "tasks", "harbor_refresh", "settings")
#: What runs code that it reads.
DANGEROUS = {"pickle", "cPickle", "dill", "marshal", "shelve", "yaml"}
#: Flower's and Celery's own, which our settings name under other words; and files of secrets.
NOT_OURS = {"FLOWER_READ_ONLY", "FLOWER_BASIC_AUTH", "CELERY_ACCEPT_CONTENT", "SECRET_KEY_FILE"}


@pytest.mark.parametrize("named", sorted(set(named_in(PAGE))), ids="::".join)
def test_every_test_that_is_named_exists(named: Named) -> None:
    refuse_missing(named)


def test_every_threat_has_a_guard_and_a_test() -> None:
    tables = re.findall(r"^\| what [^\n]*\| tests \|\n\| ---[^\n]*\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE)
    threats = [row.strip("| ").split(" | ") for table in tables for row in table.splitlines()]
    assert len(threats) >= 35
    for threat in threats:
        assert len(threat) == 3, threat
        assert named_in(threat[2]), threat[0]
        assert not NAME.sub("", threat[2]).strip(), threat


def test_every_setting_that_is_named_is_read() -> None:
    named = set(re.findall(r"`([A-Z][A-Z_]{6,})(?:=\w+)?`", PAGE)) - NOT_OURS - {"DEBUG"}
    assert len(named) >= 5
    assert named <= set(variables())


def test_only_json_is_accepted_and_nothing_is_unpickled() -> None:
    """Django's cache unpickles what it reads, except whole numbers. So the one module that uses it only counts."""
    assert settings.CELERY_ACCEPT_CONTENT == ["json"]
    assert settings.CELERY_TASK_SERIALIZER == "json"
    used = set()
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = [one.name for one in node.names] + [getattr(node, "module", None) or ""]
                assert not DANGEROUS & {one.split(".")[0] for one in modules}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cache":
                used.add((path.relative_to(ROOT).as_posix(), node.attr))
    assert used == {("executions/api/rate.py", "incr"), ("executions/api/rate.py", "add")}


def test_the_page_of_the_repository_leads_here() -> None:
    assert "[docs/security.md](docs/security.md)" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
