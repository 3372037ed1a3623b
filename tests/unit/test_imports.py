"""Imports run one way: examples, benchmarks → harbor_refresh → tasks → executions; inside executions, from the
screens down."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What production runs on.
APPS = ("executions", "tasks", "harbor_refresh")

#: The floors of `executions`, from the top. A module may import what is on its own floor or below.
FLOORS = (
    ("admin", "management", "checks", "apps"),
    ("usecases", "strategies", "invariants"),
    ("queue", "database", "sql", "models", "hook", "narrator"),
    ("status", "text", "conf", "errors", "signals", "points"),
)


def modules(*packages: str) -> list[Path]:
    return sorted(
        path for package in packages for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts
    )


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the file, `from package import module` in full.

    What is imported for the types alone is left out: it is not there when the program runs.
    """
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pending.extend(node.orelse)
                continue
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                assert node.level == 0, f"{path} imports relatively"
                yield from (_module(node.module or "", alias.name) for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def _module(package: str, name: str) -> str:
    """`from a.b import c` imports a.b.c if that is a module, else a.b."""
    inner = ROOT.joinpath(*package.split("."), name)
    return f"{package}.{name}" if inner.with_suffix(".py").exists() or inner.is_dir() else package


def is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def forbidden(paths: list[Path], *packages: str) -> list[str]:
    return [
        f"{name_of(path)} imports {module}"
        for path in paths
        for module in imports(path)
        if is_in(module, packages)
    ]


def floor(module: str) -> int | None:
    parts = module.split(".")
    if parts[0] != "executions" or len(parts) == 1:
        return None
    return next((number for number, names in enumerate(FLOORS) if parts[1] in names), None)


def test_the_walk_sees_imports_wherever_they_are() -> None:
    found = {(name_of(path), module) for path in modules("tasks") for module in imports(path)}
    assert ("tasks.wakeup", "tasks.claim_batch") in found  # inside a function
    assert ("tasks.apps", "tasks.heartbeat") in found  # a module, by `from tasks import`
    assert ("tasks.claim_batch", "executions.usecases") in found


def test_executions_knows_of_no_celery_and_of_nobody_above() -> None:
    assert forbidden(modules("executions"), "celery", "kombu", "billiard", "tasks", "harbor_refresh") == []


def test_tasks_does_not_know_who_wires_it() -> None:
    assert forbidden(modules("tasks"), "harbor_refresh") == []


def test_settings_are_imported_by_nobody() -> None:
    """The launchers of `make up` and of the bench borrow the readers, before there are any settings."""
    assert forbidden(modules(*APPS, "benchmarks", "examples"), "settings") == [
        "benchmarks.servers imports settings.env",
        "harbor_refresh.local.startup imports settings.env",
    ]


def test_the_apps_and_settings_import_neither_benchmarks_nor_examples() -> None:
    assert forbidden(modules(*APPS, "settings"), "benchmarks", "examples") == []


def test_benchmarks_and_examples_do_not_import_each_other() -> None:
    assert forbidden(modules("benchmarks"), "examples") == []
    assert forbidden(modules("examples"), "benchmarks") == []


def test_the_mirror_and_its_traffic_import_what_a_project_of_its_own_would() -> None:
    public = ("django", "harbor_refresh.celery", "tasks.jobs", "examples.mirror", *sys.stdlib_module_names)
    paths = sorted((ROOT / "examples").glob("*.py"))
    assert [path.stem for path in paths] == ["__init__", "mirror", "traffic"]
    imported = {module for path in paths for module in imports(path)}
    assert {module for module in imported if not is_in(module, public)} == set()
    assert not {module for module in imported if module.startswith("tasks.jobs.")}


def test_the_simulation_needs_nothing_of_ours_but_executions() -> None:
    assert forbidden(modules("examples/simulation"), "tasks", "harbor_refresh", "examples.mirror") == []


def test_settings_import_nothing_of_ours() -> None:
    assert forbidden(modules("settings"), *APPS) == []


def test_use_cases_import_neither_redis_nor_celery() -> None:
    assert forbidden(modules("executions/usecases"), "redis", "celery", "kombu") == []


def test_only_the_queue_imports_redis() -> None:
    others = [path for path in modules("executions", "tasks") if not is_in(name_of(path), ("executions.queue",))]
    assert forbidden(others, "redis") == []


def test_the_queue_knows_nothing_of_the_database() -> None:
    queue = modules("executions/queue")
    assert forbidden(queue, "django.db", "psycopg", "executions.models", "executions.sql") == []
    assert forbidden(queue, "executions.database", "executions.usecases") == []


def test_every_module_of_executions_has_its_floor() -> None:
    lost = [name_of(path) for path in modules("executions") if floor(name_of(path)) is None]
    assert lost == ["executions"]


@pytest.mark.parametrize("path", modules("executions"), ids=name_of)
def test_no_module_of_executions_imports_from_a_floor_above(path: Path) -> None:
    own = floor(name_of(path))
    above = [
        module
        for module in imports(path)
        if own is not None
        and (other := floor(module)) is not None
        and other < own
        and name_of(path) != "executions.apps"
    ]
    assert above == []


def test_models_queue_and_statements_do_not_know_each_other() -> None:
    assert forbidden(modules("executions/models"), "executions.queue", "executions.sql") == []
    assert forbidden(modules("executions/sql"), "executions.models", "executions.queue") == []
