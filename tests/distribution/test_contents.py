"""What the wheel carries: the two apps and parts of the service, each of them chosen."""

import ast
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from distribution import contents, copies
from distribution.errors import Refused
from distribution.modules import modules
from tests.distribution.metadata import ROOT, declared


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    copies.write(ROOT, folder)
    return folder / contents.NAMESPACE


def imported(tree: Path) -> Iterator[str]:
    for path in tree.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""


def test_the_wheel_has_every_file_of_both_apps(tree: Path) -> None:
    for app in contents.APPS:
        there = {path.relative_to(tree / app) for path in contents.below(tree / app)}
        assert there == {path.relative_to(ROOT / app) for path in contents.below(ROOT / app)}
    assert {path.suffix for path in contents.below(tree)} == contents.KINDS


def test_the_wheel_imports_itself_and_what_its_metadata_names(tree: Path) -> None:
    roots = {name.partition(".")[0] for name in imported(tree)} - sys.stdlib_module_names
    distributions = packages_distributions()
    named = {canonicalize_name(distributions[root][0]) for root in roots - {contents.NAMESPACE}}
    brought = {"pydantic", "pydantic-core", "tornado", "asgiref", "billiard", "vine"}  # by those that are named
    of_the_project = {"pytest"}  # a project that asks for our fixtures has it
    assert named - brought - of_the_project <= {canonicalize_name(one.name) for one in declared()}


def test_the_wheel_has_neither_settings_nor_servers_nor_benchmarks(tree: Path) -> None:
    others = {"settings", "benchmarks", "examples", "tests", "distribution"}
    names = {path.relative_to(tree).parts[0] for path in contents.below(tree)}
    assert names.isdisjoint({*others, "local", "celery.py", "wsgi.py", "apps.py", "admin"})
    assert {name.partition(".")[0] for name in imported(tree)}.isdisjoint(others)


def test_a_part_of_the_service_that_no_table_names_ends_the_build(tmp_path: Path) -> None:
    for folder in (contents.NAMESPACE, *contents.APPS):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    contents.files(tmp_path)
    (tmp_path / contents.NAMESPACE / "new.py").touch()
    with pytest.raises(Refused, match=r"^harbor_refresh/new.py: in 0 of the tables CARRIED and LEFT_OUT$"):
        contents.files(tmp_path)
    (tmp_path / contents.NAMESPACE / "new.py").unlink()
    (tmp_path / "tasks/dump.rdb").touch()
    with pytest.raises(Refused, match=r"tasks/dump.rdb: a file of a kind that is not in KINDS$"):
        contents.files(tmp_path)
    (tmp_path / "tasks/dump.rdb").unlink()
    (tmp_path / contents.NAMESPACE / "wsgi.py").unlink()
    with pytest.raises(Refused, match=r"names what is not in harbor_refresh/: wsgi.py$"):
        contents.files(tmp_path)


def test_the_names_of_messages_are_those_of_our_celery_tasks() -> None:
    from celery import current_app

    ours = {
        name for name, one in current_app.tasks.items() if type(one).__module__.partition(".")[0] in contents.APPS
    }
    assert modules(ROOT, contents.files(ROOT)).messages == ours
