"""What the documentation names exists, and what exists is documented."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.conf import DECLARED as OF_EXECUTIONS
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.declarations import Declared
from harbor_refresh.executions.lifecycle.quarantines import LOST
from harbor_refresh.management.commands import attach
from harbor_refresh.tasks.conf import DECLARED as OF_TASKS
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.management.commands import harbor
from harbor_refresh.tasks.queue import keys

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
OPERATIONS = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
JOBS = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
#: These stand in a table of their own.
OF_HASH = ("CORE_INSTANCE_ID", "CORE_INSTANCE_TOTAL")
DECLARED = {one.name: one for one in (*OF_EXECUTIONS.values(), *OF_TASKS.values())}


def section(title: str) -> str:
    """The text under a heading of operations.md, up to the next one of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", OPERATIONS, re.MULTILINE | re.DOTALL)
    assert found, f"docs/operations.md has no section {title}"
    return found[1]


def first_cells(text: str) -> dict[str, str]:
    """The rows of all tables whose first cell is `a name`: the name and the rest of its row."""
    return dict(re.findall(r"^\| `([^`]+)` \|(.*)\|$", text, re.MULTILINE))


def calls(path: Path, owner: str) -> Iterator[ast.Call]:
    """Every call of a function of `owner`: `owner.function(…)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == owner
        ):
            yield node


def variables() -> dict[str, dict[str, Any]]:
    """The variables the settings read, each with the literals it is read with."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((ROOT / "settings").glob("*.py")):
        for call in calls(path, "env"):
            assert isinstance(call.func, ast.Attribute)
            words = [str(one.value) if isinstance(one, ast.Constant) else "" for one in call.args]
            names = words if call.func.attr == "redis_url" else words[:1]
            literals = {
                one.arg: ast.literal_eval(one.value)
                for one in call.keywords
                if one.arg and isinstance(one.value, ast.Constant | ast.UnaryOp)
            }
            reader, defaults = call.func.attr, words[1:]
            if reader == "value":
                reader, *defaults = defaults
            if reader != "redis_url" and defaults:
                literals["default"] = defaults[0]
            for number, name in enumerate(names):
                if name.isupper():
                    first = literals if number == 0 else {}
                    found.setdefault(name, {"reader": reader, **first})
    return found | {name: {"reader": one.kind} for name, one in DECLARED.items()}


def row(one: Declared) -> str:
    """Write the row of the documentation for a setting that an app declares."""
    default = "" if one.default in (None, "") else f"`{one.default}`"
    low = f"{one.at_least:g}" if one.at_least is not None else ""
    limits = f"{low} to {one.at_most:,}" if one.at_most is not None else f"from {low}"
    cells = (f"`{one.name}`", one.shown or default, one.takes or limits, one.meaning)
    return "| " + " | ".join(cells).replace("|  |", "| |") + " |"


@pytest.mark.parametrize(
    ("title", "declared"),
    [
        ("The intake", [*OF_EXECUTIONS.values()]),
        ("The refresh", [one for one in OF_TASKS.values() if one.name not in OF_HASH]),
        ("The strategy hash", [one for one in OF_TASKS.values() if one.name in OF_HASH]),
    ],
    ids=["intake", "refresh", "hash"],
)
def test_a_table_of_settings_is_made_from_their_declarations(title: str, declared: list[Declared]) -> None:
    """Copy the rows that this expects into docs/operations.md."""
    text = re.split(r"\n###? ", OPERATIONS.split(f"\n### {title}\n")[1])[0]
    table = re.findall(r"^\| `[A-Z].*\|$", text, re.MULTILINE)
    assert table == [row(one) for one in declared]


def test_the_keys_of_a_project_are_named_on_its_page() -> None:
    """A comma and the name of each that is not only for the service."""
    (named,) = re.findall(r"^The keys are (.*?)\.$", JOBS, re.MULTILINE | re.DOTALL)
    there = [one.key for one in DECLARED.values() if not one.of_service]
    assert set(re.findall(r"`(\w+)`", named)) == {"REDIS_URL", *there} - {"STRATEGY", *OF_HASH}


@pytest.mark.parametrize(
    ("declared", "read"),
    [(OF_EXECUTIONS, intake_settings), (OF_TASKS, refresh_settings)],
    ids=["intake", "refresh"],
)
def test_a_project_that_sets_nothing_has_every_default(
    declared: dict[str, Declared], read: Callable[[], object], settings: Settings
) -> None:
    for one in declared.values():
        delattr(settings, one.name)
    values = read()
    assert {field: getattr(values, field) for field in declared} == {
        field: one.default for field, one in declared.items()
    }


def takes(read: dict[str, Any]) -> str:
    """How a range is written in the documentation."""
    if "at_least" not in read:
        return ""
    low = f"{read['at_least']:g}"
    return f"{low} to {read['at_most']:,}" if "at_most" in read else f"from {low}"


def default(read: dict[str, Any]) -> str:
    match read["reader"], read.get("default"):
        case "auto_or_integer", _:
            return "`auto`"
        case _, None | "":
            return ""
        case "integer", value if int(value) >= 10_000:
            return f"`{int(value):,}`"
        case _, value:
            return f"`{value}`"


def test_every_variable_is_documented_and_every_documented_one_is_read() -> None:
    documented = first_cells(section("Environment variables"))
    names = {name for name in documented if name.isupper()}
    assert names == set(variables())


#: `make up` gives these to its own programs; make, a shell and Django know the others.
OF_OTHERS = {"NEW_ADMIN_PASSWORD", "MAKELEVEL", "PATH", "PYTHONUNBUFFERED"}


def test_every_variable_that_the_code_reads_beside_the_settings_is_on_a_page() -> None:
    """The table above is of the settings. These belong to one program: the client, Flower, traces or `make up`."""
    code = [
        path.read_text(encoding="utf-8")
        for package in ("executions", "tasks", "harbor_refresh")
        for path in (ROOT / package).rglob("*.py")
    ]
    found = {name for text in code for name in re.findall(r"""environ(?:\.get\(|\[)\s*"([A-Z_]+)\"""", text)}
    found |= {name for text in code for name in re.findall(r'"([A-Z_]+)" in (?:os\.)?environ', text)}
    assert {"HARBOR_REFRESH_TOKEN", "FLOWER_READ_ONLY", "MAKELEVEL"} < found
    named = set(re.findall(r"\b[A-Z][A-Z_]{3,}\b", "".join(page.read_text(encoding="utf-8") for page in PAGES)))
    assert found - OF_OTHERS - named == set()


@pytest.mark.parametrize("name", sorted(variables()))
def test_a_variable_is_documented_with_its_default_and_range(name: str) -> None:
    read = variables()[name]
    cells = [cell.strip() for cell in first_cells(section("Environment variables"))[name].split("|")]
    assert len(cells) == 3
    if default(read):
        assert cells[0] == default(read)
    assert takes(read) in cells[1]


def log_lines() -> list[tuple[str, str]]:
    """Return each level and format with which our code writes to the log."""
    return [
        (call.func.attr.upper(), call.args[0].value)
        for package in ("executions", "tasks", "harbor_refresh")
        for path in sorted((ROOT / package).rglob("*.py"))
        for call in calls(path, "log")
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("debug", "info", "warning", "error", "exception", "critical")
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    ]


def test_the_log_lines_that_the_page_explains_are_written_word_for_word() -> None:
    documented = re.findall(r"^\| ([A-Z]+) \| `([^`]+)` \|", section("Log lines"), re.MULTILINE)
    assert len(documented) > 10
    assert set(documented) <= set(log_lines())


def test_the_reason_of_a_quarantine_without_an_error_is_documented_word_for_word() -> None:
    assert f"*{LOST}*" in " ".join(section("When something is wrong").split())


def test_every_key_is_documented() -> None:
    assert set(first_cells(section("Redis"))) == set(vars(keys.Keys("")).values())


def test_every_check_is_documented() -> None:
    """Those of the service on the page of operations, and those of a project on the page of jobs."""
    modules = [path for app in ("executions", "tasks") for path in (ROOT / app).rglob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in modules)
    of_projects = first_cells((ROOT / "docs/jobs.md").read_text(encoding="utf-8"))
    documented = [*first_cells(section("Environment variables")), *of_projects]
    ids = {name for name in documented if re.fullmatch(r"harbor_\w+\.[EW]\d+", name)}
    assert ids == set(re.findall(r'id="(harbor_\w+\.[EW]\d+)"', code))


def test_every_command_is_documented() -> None:
    packages = ("executions", "tasks", "harbor_refresh")
    folders = [ROOT / package / "management/commands" for package in packages]
    families = {
        "harbor": harbor.VERBS,
        "attach": attach.VERBS,
    }
    there = {path.stem for folder in folders for path in folder.glob("*.py")} - {"__init__", *families}
    there |= {f"{family} {verb}" for family, verbs in families.items() for verb in verbs}
    documented = set()
    for words in first_cells(section("Commands")):
        command, *rest = words.split()
        documented.add(f"{command} {rest[0]}" if command in families else command)
    assert documented == there


def test_every_target_of_make_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
        assert named <= targets, page
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


FOLDERS = ("executions", "tasks", "harbor_refresh", "settings", "benchmarks", "examples", "tests")


def files() -> set[str]:
    """The names of our modules, statements and scripts."""
    folders = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    return {path.name for path in [*folders, *ROOT.glob("*.py")]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page: Path) -> None:
    """A path from the root, or the name of a file alone; NAME stands for a name to choose. Rows of faults.md name
    tests, which test_faults_page.py looks up."""
    for named in re.findall(r"`([\w./-]+)`", page.read_text(encoding="utf-8")):
        if named.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            assert (ROOT / named).exists(), named
        elif re.fullmatch(r"[\w-]+\.(py|sql|lua)", named) and not named.startswith("NAME"):
            assert named in files(), named


def test_pages_that_the_code_names_exist() -> None:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for named in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
                assert (ROOT / named).exists(), f"{path} names {named}"


def test_the_index_names_every_decision_and_each_is_short() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "index.md").read_text(encoding="utf-8")
    for path in sorted(folder.glob("0*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix(f"# {path.name[:4]} ")
        assert f"| [{path.name[:4]}]({path.name}) | {title} |" in index
        assert len(text.splitlines()) <= 30, path.name


def test_every_library_has_its_reason() -> None:
    reasons = (ROOT / "docs/decisions/0001-libraries.md").read_text(encoding="utf-8").lower()
    for path in ROOT.glob("requirements*.txt"):
        for pin in re.findall(r"^([\w-]+)(?:\[\w+\])?==", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert re.search(rf"(?<![\w-]){pin.lower()}(?![\w-])", reasons), pin
