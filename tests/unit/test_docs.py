"""The reference has what the code has, and what the pages name exists."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import harbor_refresh
from docs import hooks
from harbor_refresh.management.commands import attach
from harbor_refresh.tasks.checks.registry import REGISTERED
from harbor_refresh.tasks.management.commands import harbor
from harbor_refresh.tasks.queue.keys import Keys
from tests import pages

ROOT = pages.ROOT
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
REFERENCE = {
    path.stem: hooks.filled(path.read_text(encoding="utf-8")) for path in ROOT.glob("docs/reference/*.md")
}
APPS = ("executions", "tasks", "harbor_refresh")
FOLDERS = (*APPS, "settings", "benchmarks", "examples", "tests")


def first_cells(page: str) -> set[str]:
    """The names that begin a row of a table."""
    return set(re.findall(r"^\| `([^`]+)` \|", REFERENCE[page], re.MULTILINE))


def calls(path: Path, owner: str) -> Iterator[tuple[str, str]]:
    """Each call `owner.function("text", …)`: the function and the text; of a log also `line(LEVEL, "text", …)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), function), [ast.Constant(str(text)), *_]) if name == owner:
                yield function, text
            case ast.Call(ast.Name("logged"), [ast.Name(level), ast.Constant(str(text)), *_]) if owner == "log":
                yield level.lower(), text


def of_the_apps(owner: str) -> set[tuple[str, str]]:
    return {one for app in APPS for path in (ROOT / app).rglob("*.py") for one in calls(path, owner)}


def variables() -> set[str]:
    """The variables that the settings read."""
    read = {name for path in ROOT.glob("settings/*.py") for _, name in calls(path, "env") if name.isupper()}
    assert "LOG_FORMAT" in read
    return read | {one.name for one in hooks.DECLARED}


def test_the_reference_has_each_setting() -> None:
    keys = {one.key for one in hooks.DECLARED if not one.of_service}
    assert first_cells("settings") == variables() | keys


def test_the_reference_has_each_command() -> None:
    there = {path.stem for app in APPS for path in (ROOT / app).glob("management/commands/[a-z]*.py")}
    assert {"harbor", "attach", "doctor", "alive"} == there
    titles = set(re.findall(r"^### (\w+ ?[\w-]*)", REFERENCE["commands"], re.MULTILINE))
    families = {"harbor": harbor.VERBS, "attach": attach.VERBS}
    verbs = {f"{name} {verb}" for name, verbs in families.items() for verb in verbs}
    assert verbs | there - families.keys() <= titles


def test_the_reference_has_each_metric_that_alerts_and_panels_ask_for() -> None:
    rules = (ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8")
    panels = json.dumps(json.loads((ROOT / "deploy/grafana/dashboard.json").read_text(encoding="utf-8")))
    asked = {
        re.sub("_(bucket|sum|count)$", "", one) for one in re.findall(r"\bharbor_refresh_\w+", rules + panels)
    }
    assert asked
    assert asked <= first_cells("metrics")


def test_the_reference_has_each_key() -> None:
    assert first_cells("keys") == set(vars(Keys("")).values())


def test_the_reference_has_each_check() -> None:
    code = "".join(path.read_text(encoding="utf-8") for app in APPS for path in (ROOT / app).rglob("*.py"))
    assert first_cells("checks") == REGISTERED.keys() | set(re.findall(r'id="(harbor_\w+\.[EW]\d+)"', code))
    assert "error, error" not in REFERENCE["checks"]


def test_the_reference_has_each_public_name() -> None:
    named = set(re.findall(r"\bharbor_refresh\.(\w+)$", REFERENCE["python"] + REFERENCE["events"], re.MULTILINE))
    assert set(harbor_refresh.__all__) == named - {"fixtures"}


def test_the_log_lines_of_the_reference_are_written_word_for_word() -> None:
    lines = set(re.findall(r"^\| ([A-Z]+) \| `([^`]+)` \|", REFERENCE["log"], re.MULTILINE))
    assert len(lines) > 10
    assert lines <= {(level.upper(), text) for level, text in of_the_apps("log")}


def test_each_alert_has_its_section() -> None:
    rules = (ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8")
    titles = set(re.findall(r"^## `?(\w+)`?$", pages.read("docs/howto/alerts.md"), re.MULTILINE))
    assert set(re.findall(r"- alert: (\w+)", rules)) <= titles


def test_the_home_page_lists_each_page() -> None:
    """GitHub has no navigation, and the README links here. The decisions have a list of their own."""
    folder = ROOT / "docs"
    there = {str(path.relative_to(folder)) for path in folder.rglob("*.md") if not path.name.startswith("0")}
    listed = re.findall(r"\]\(([^)\s]+\.md)\)", pages.read("docs/index.md"))
    assert there - {"index.md"} == set(listed)


def anchors(page: Path) -> set[str]:
    text = hooks.filled(page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", pages.outside(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_has_a_target(page: Path) -> None:
    """`make docs` looks at those within the site; here are also those of GitHub."""
    for target in re.findall(r"\]\(([^)\s]+)\)", pages.outside(page.read_text(encoding="utf-8"))):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_targets_that_a_page_names_exist(page: Path) -> None:
    """A path from the root, or the name of a module, a statement or a script of ours."""
    text = page.read_text(encoding="utf-8")
    files = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")}
    for named in re.findall(r"`([\w./-]+)`", text):
        if named.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            assert (ROOT / named).exists(), named
        elif re.fullmatch(r"(?!NAME)[\w-]+\.(sql|lua)", named):
            assert named in files, named
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= set(targets)


def test_pages_that_the_code_names_exist() -> None:
    kinds = ("py", "html", "yml", "yaml", "sh", "toml", "txt", "lua", "sql")
    sources = [
        path for folder in (*FOLDERS, "deploy") for kind in kinds for path in (ROOT / folder).rglob(f"*.{kind}")
    ]
    for path in [*sources, *ROOT.glob("*.[ty]*"), ROOT / "Makefile"]:
        for named in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / named).exists(), f"{path} names {named}"
