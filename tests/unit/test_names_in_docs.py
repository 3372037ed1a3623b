"""What a page tells a project to import is public and exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import harbor_refresh
from harbor_refresh.executions import errors
from tests import pages
from tests.pages import ROOT

#: The explanation names modules, and alerts have names of errors.
PAGES = [ROOT / "README.md", *sorted({*ROOT.glob("docs/[hs]*/*.md")} - {ROOT / "docs/howto/alerts.md"})]
#: Public modules, and the values of settings.
PUBLIC = (
    "harbor_refresh",
    "harbor_refresh.client",
    "harbor_refresh.redis_transport",
    "harbor_refresh.tasks_backend",
    "harbor_refresh.testing",
)
VALUES = {
    "harbor_refresh.consumer:Consumer",
    "harbor_refresh.executions",
    "harbor_refresh.tasks",
    "harbor_refresh.tasks.pipeline.beat:PatientScheduler",
    "harbor_refresh.tasks_backend.TrackedBackend",
    "harbor_refresh.testing.fixtures",
}
#: With the folders of the checkout, which are no names.
OURS = ("harbor_refresh", "executions", "tasks")
#: Celery tasks, which are named like modules.
MESSAGES = {
    name
    for path in (ROOT / "tasks").rglob("*.py")
    for name in re.findall(r"shared_task\(\s*name=\"([\w.]+)\"", path.read_text(encoding="utf-8"))
}
DOTTED = re.compile(rf"({'|'.join(OURS)})([.:]\w+)+")


def source_of(module: str) -> Path | None:
    """Return the file of a module."""
    place = ROOT.joinpath(*module.split("."))
    return next((one for one in (place / "__init__.py", place.with_suffix(".py")) if one.is_file()), None)


@cache
def names_of(module: str) -> set[str]:
    """Return the public names of a module, which may need packages that are not installed here."""
    if module == "harbor_refresh":
        return set(harbor_refresh.__all__)
    source = source_of(module)
    assert source, f"{module} does not exist"
    body = ast.parse(source.read_text(encoding="utf-8")).body
    listed = [
        one.value for one in body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__"
    ]
    if listed:
        return set(ast.literal_eval(listed[0]))
    defined = (one.name for one in body if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef))
    return {name for name in defined if not name.startswith("_")}


def is_module(name: str) -> bool:
    """Whether it is a module of ours, or in one: not a queue, a check, a metric or a Celery task."""
    first, second, *_ = re.split("[.:]", name)
    return name not in MESSAGES and source_of(f"{first}.{second}") is not None


def is_public(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    return name in VALUES or name in PUBLIC or (module in PUBLIC and attribute in names_of(module))


def named_in(code: str) -> Iterator[str]:
    """Yield the names of ours that Python code imports, takes from the package, or has in a text."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import():
                yield from (one.name for one in node.names if one.name.partition(".")[0] in OURS)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in OURS:
                yield from (f"{module}.{one.name}" for one in node.names)
            case ast.Attribute(value=ast.Name("harbor_refresh"), attr=attribute):
                yield f"harbor_refresh.{attribute}"
            case ast.Constant(value=str(text)) if DOTTED.fullmatch(text) and is_module(text):
                yield text


def named_inline(page: str) -> Iterator[str]:
    for text in pages.spans(page):
        if re.match(r"from [\w.]+ import \w", text):
            yield from named_in(text)
        elif (found := DOTTED.match(text)) and is_module(found[0]):
            yield found[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_public_names_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = [*named_inline(text), *(name for code in pages.codes(text, "python") for name in named_in(code))]
    assert [name for name in named if not is_public(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_an_error_that_a_page_names_is_public(page: Path) -> None:
    ours = {name for name, one in vars(errors).items() if isinstance(one, type)}
    named = set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))
    assert named & ours <= set(harbor_refresh.__all__)
