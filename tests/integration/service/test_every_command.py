"""Each command of manage.py that a page names, in a sentence or in a table, can be typed as it stands there."""

import re
from collections.abc import Iterator

import pytest
from django.core.management import ManagementUtility

from benchmarks.command import Command as Bench
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from tests import pages
from tests.started import start

#: The changelog is left out: a command of a past release may be gone.
PAGES = [*(pages.ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
PAGES += sorted(pages.ROOT.glob("docs/**/*.md"))
#: Commands whose name alone, without `manage.py` before it, is a command when words follow.
OURS = "alive|attach|doctor|harbor"
COMMAND = re.compile(rf"(?:python )?manage\.py ([a-z].*)|((?:{OURS}) [a-z\[-].*)")
MEASURES = re.compile(r"python -m benchmarks ([a-z-].*)")
#: A page may name a command without the words that it demands.
DEMANDED = {
    "harbor delete": "FILTER",
    "harbor repair refresh": "FILTER",
    "harbor resume": "FILTER",
    "harbor retry": "FILTER",
    "harbor stop": "FILTER",
    "harbor quarantine --release": "ID",
}
#: What a person writes in the place of a word in capital letters.
VALUES = {
    "AGE": "30d",
    "CHECK": "redis",
    "FILTER": "--vendor TEST",
    "LEVEL": "warning",
    "N": "1",
    "NAME": "runner",
    "QUEUE": "harbor_refresh.jobs",
    "S": "Running",
    "SECONDS": "0.1",
    "TEXT": "upgrade",
    "X": "TEST",
}
#: How these end where neither a worker nor a beat runs, and which is not attached.
FAILS = {
    "alive worker": "no worker of .* has answered",
    "alive beat": "Beat has never sent anything",
    "attach check": "no Harbor is attached",
    "attach dead-tasks": "no Harbor is attached",
    "attach dead-tasks --dry-run": "no Harbor is attached",
    "doctor": r"\d+ problems?",
    "harbor check": r"\d+ errors",
}


def named(command: re.Pattern[str]) -> Iterator[str]:
    for page in PAGES:
        for span in pages.spans(page.read_text(encoding="utf-8")):
            if found := command.fullmatch(span):
                yield next(filter(None, found.groups()))


def variants(command: str) -> Iterator[str]:
    """The command with all that is optional (`[--dry-run]`), for each choice that it leaves (`worker|beat`)."""
    text = f"{command} {DEMANDED.get(command, '')}".strip()
    text = " ".join(re.sub(r"[\[\]…]", " ", text).split())
    choice = re.search(r"[\w-]+(?:\|[\w-]+)+", text)
    for one in choice[0].split("|") if choice else [""]:
        yield text.replace(choice[0], one) if choice else text


TYPED = sorted({one for command in named(COMMAND) for one in variants(command)} - {"attach", "harbor"})
MEASURING = sorted(set(named(MEASURES)))


def filled(command: str) -> list[str]:
    """The words of the command, with values in the places that a person fills, and rows of which they speak."""
    execution = start("TEST", [[NewJob("a.job", job_id="a")]])
    values = VALUES | {"ID": str(execution.pk), "EXECUTION_ID": str(execution.pk)}
    values["TASK"] = str(execution.tasks.get().pk)
    words = " ".join(values.get(word, word) for word in command.split()).split()
    if "--release" in command.split():
        quarantine([execution.pk], 5, {execution.pk: "a row is bad"})
    if words == ["shell"]:
        words += ["--command", "pass"]  # without it, it needs a terminal
    is_act = words[:2] == ["harbor", "delete"] or ("FILTER" in command and words[1] != "list")
    return [*words, "--yes"] if is_act else words


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run it as manage.py does, in this process; return its exit code and what it says of a failure."""
    try:
        ManagementUtility(["manage.py", *words]).execute()
    except SystemExit as end:
        return int(str(end.code or 0)), capsys.readouterr().err
    return 0, ""


@pytest.mark.usefixtures("database", "redis")
@pytest.mark.parametrize("command", TYPED)
def test_a_command_that_a_page_names_can_be_typed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = run(filled(command), capsys)
    if reason := FAILS.get(command):
        assert code == 1, told
        assert re.search(reason, told), told
    else:
        assert code == 0, told


@pytest.mark.parametrize("command", MEASURING)
def test_a_measurement_that_a_page_names_has_options_that_the_bench_takes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their sizes take minutes to hours. tests/integration/benchmarks runs each experiment with small ones."""
    parser = Bench().create_parser("python -m", "benchmarks")
    words = [VALUES.get(word, word) for word in command.split()]
    if words == ["--help"]:
        with pytest.raises(SystemExit, match=r"^0$"):
            parser.parse_args(words)
        assert "--executions" in capsys.readouterr().out
    else:
        parser.parse_args(words)


def test_there_are_commands_to_type() -> None:
    """Else a change of how they are found would let every command pass."""
    assert len(TYPED) > 30
    assert len(MEASURING) > 4
    assert {"harbor status", "alive beat", "doctor"} < set(TYPED)
