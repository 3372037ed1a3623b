"""Two apps and one border: benchmarks, examples → harbor_refresh → tasks → executions. No circle anywhere.

`executions` is the truth, on PostgreSQL alone; `tasks` is the queue and the workers. What crosses the border
upwards is the news of executions/news/after_commit.py, which is no import. Here the two apps have short names:
`tasks.queue` is `harbor_refresh.tasks.queue`.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("executions", "tasks", "harbor_refresh")
PACKAGES = (*APPS, "settings", "benchmarks", "examples")


def modules(*packages: str) -> list[Path]:
    return sorted(
        path for package in packages for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts
    )


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def short(name: str) -> str:
    return re.sub(r"^harbor_refresh\.(?=(executions|tasks)\b)", "", name)


@cache
def known() -> frozenset[str]:
    return frozenset(name_of(path) for path in modules(*PACKAGES))


@cache
def statements(path: Path) -> frozenset[str]:
    """Every module that is imported anywhere in the file, in a function or for the types alone as well."""

    def found() -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (short(alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} imports relatively"
                module = node.module or ""
                yield from (_module(short(f"{module}.{alias.name}")) or short(module) for alias in node.names)

    return frozenset(found())


@cache
def imports(path: Path) -> frozenset[str]:
    """With those that a string names: a module of ours, or something in one."""
    texts = (node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if _is_text(node))
    named = {_module(short(text), within=True) for text in texts if text.startswith("harbor_refresh.")}
    return statements(path) | named - {""}


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _module(name: str, *, within: bool = False) -> str:
    """The module of that name; or, `within`, the one that the name leads into."""
    while "." in name:
        if name in known():
            return name
        if not within or not re.fullmatch(r"\w+(\.\w+)+(:\w+)?", name):
            return ""
        name = re.split(r"[.:]\w+$", name)[0]
    return ""


def is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def forbidden(paths: list[Path], *packages: str, found: Callable[[Path], frozenset[str]] = imports) -> list[str]:
    return [
        f"{name_of(path)} imports {module}"
        for path in paths
        for module in sorted(found(path))
        if is_in(module, packages)
    ]


def graph_of(paths: list[Path]) -> dict[str, frozenset[str]]:
    return {name_of(path): imports(path) - {name_of(path)} for path in paths}


def test_the_walk_sees_imports_wherever_they_are() -> None:
    found = {(name_of(path), module) for path in modules("tasks") for module in imports(path)}
    assert ("tasks.apps", "tasks.pipeline.marks") in found  # inside a function
    assert ("tasks.strategies", "tasks.strategies.older") in found  # by a string
    assert ("tasks.strategies", "tasks.recover_stale") not in found


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter(graph_of(modules(*APPS, "benchmarks", "examples"))).prepare()  # CycleError names it


def test_executions_imports_neither_redis_nor_celery() -> None:
    above = ("tasks", "harbor_refresh", "benchmarks", "examples")
    assert forbidden(modules("executions"), "redis", "celery", "kombu", "billiard", "httpx2", *above) == []


def test_the_apps_import_psycopg_only_to_read_harbors_types_and_to_look_whether_it_is_there() -> None:
    """A project must start where psycopg 3 cannot be loaded, and a check then says what to type."""
    assert forbidden(modules("executions", "tasks"), "psycopg", "psycopg2", found=statements) == [
        "executions.attached.harbors_types imports psycopg.types.datetime",
        "executions.attached.harbors_types imports psycopg.types.string",
        "tasks.checks.settings imports psycopg",
    ]


def test_tasks_imports_neither_the_service_nor_benchmarks_nor_examples() -> None:
    assert forbidden(modules("tasks"), "harbor_refresh", "benchmarks", "examples") == []


def test_the_service_imports_neither_benchmarks_nor_examples() -> None:
    """`make up` starts the traffic, as a program of its own."""
    assert forbidden(modules("harbor_refresh"), "benchmarks", "examples", found=statements) == []


@pytest.mark.parametrize("package", ["executions", "tasks"])
def test_every_module_of_the_apps_is_used_by_a_program(package: str) -> None:
    """What only tests, benchmarks or examples import stands with them."""
    django_finds = re.compile(r"\.(apps|models|admin|migrations|commands|templatetags)(\.|$)")
    used = {module for path in modules(*APPS, "settings") for module in imports(path)}
    packages = {name_of(path) for path in modules(package) if path.name == "__init__.py"}
    unused = {name_of(path) for path in modules(package)} - used - packages
    assert {module for module in unused if not django_finds.search(module)} == set()


def test_only_launchers_import_settings() -> None:
    """`make up` and the bench borrow the readers, before there are any settings."""
    importers = {line.split()[0] for line in forbidden(modules(*PACKAGES), "settings", found=statements)}
    assert {one for one in importers if not one.startswith("settings")} == {
        "benchmarks.servers",
        "harbor_refresh.local.up",
    }


def test_settings_import_only_the_declarations_of_the_apps() -> None:
    ours = (package for package in PACKAGES if package != "settings")
    assert forbidden(modules("settings"), *ours, found=statements) == [
        "settings.base imports executions.attached.attachment",
        "settings.base imports executions.conf",
        "settings.base imports tasks.broker.connecting",
        "settings.base imports tasks.conf",
        "settings.env imports executions.conf.declarations",
        "settings.env imports tasks.broker.connecting",
        "settings.env imports tasks.broker.redis_address",
    ]
    for app in ("executions", "tasks"):
        found = forbidden([ROOT / app / "conf/__init__.py"], *PACKAGES)
        assert found == [f"{app}.conf imports executions.conf.declarations"]
    for alone in ("executions/conf/declarations.py", "tasks/broker/redis_address.py"):
        assert forbidden([ROOT / alone], *PACKAGES) == []
    found = forbidden([ROOT / "tasks/broker/connecting.py"], *PACKAGES)
    assert {one.split()[-1] for one in found} == {"tasks.broker.redis_address"}


def test_the_examples_import_what_a_host_project_would() -> None:
    public = ("django", "harbor_refresh.celery", "tasks.jobs", "examples", *sys.stdlib_module_names)
    paths = [path for path in modules("examples") if "simulation" not in path.parts]
    imported = {module for path in paths for module in imports(path)}
    assert {module for module in imported if not is_in(module, public)} == set()
    assert not {module for module in imported if module.startswith("tasks.jobs.")}


def test_only_the_stores_import_redis() -> None:
    stores = ("tasks.queue", "tasks.strategies.exclusion")
    others = [path for path in modules("tasks") if not is_in(name_of(path), stores)]
    assert forbidden(others, "redis") == []


def test_the_queue_imports_neither_the_database_nor_the_layers_above_it() -> None:
    above = ("tasks.pipeline", "tasks.jobs", "tasks.strategies", "tasks.sql", "tasks.models")
    below = ("django.db", "psycopg", "executions.models", "executions.sql", "executions.database")
    assert forbidden(modules("tasks/queue"), *above, *below) == []


def test_the_pipeline_imports_no_jobs() -> None:
    assert forbidden(modules("tasks/pipeline"), "tasks.jobs") == []


def test_models_and_statements_import_no_use_cases() -> None:
    assert forbidden(modules("executions/models"), "executions.sql", "executions.database") == []
    # which of two texts a statement has
    assert forbidden(modules("executions/sql"), "executions") == [
        "executions.sql imports executions.attached.attachment"
    ]
