"""Each command of manage.py that a page names, in a sentence or in a table, can be typed as it stands there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import BaseCommand, load_command_class

from harbor_refresh.executions.actions.bulk import stop_action
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.management.commands import api_docs
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from manage import COMMANDS, Utility
from tests import pages
from tests.integration.sample_actions import asked

#: The changelog is left out: a command of a past release may be gone.
PAGES = [*(pages.ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
PAGES += sorted(pages.ROOT.glob("docs/**/*.md"))
#: Commands whose name alone, without `manage.py` before it, is a command when words follow.
OURS = "alive|api_docs|attach|doctor|harbor"
COMMAND = re.compile(rf"(?:python )?manage\.py ([a-z].*)|((?:{OURS}|{'|'.join(COMMANDS)}) [a-z\[-].*)")
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
    "alive beat": "beat sent its last task never",
    "attach check": r"\d+ problems",
    "attach repair": "no Harbor is attached",
    "attach repair --dry-run": "no Harbor is attached",
    "attach repair --dead-tasks": "no Harbor is attached",
    "attach repair --dead-tasks --dry-run": "no Harbor is attached",
    "doctor": r"\d+ problems?",
    "harbor check": r"\d+ errors",
}
#: These are run by a file of their own, because they need workers.
ELSEWHERE = {"simulate": "acceptance/test_simulate.py", "simulate --demo": "acceptance/test_simulate.py"}


def named() -> Iterator[str]:
    for page in PAGES:
        for span in pages.spans(page.read_text(encoding="utf-8")):
            if found := COMMAND.fullmatch(span):
                yield found[1] or found[2]


def variants(command: str) -> Iterator[str]:
    """The command with all that is optional (`[--dry-run]`), for each choice that it leaves (`worker|beat`)."""
    text = f"{command} {DEMANDED.get(command, '')}".strip()
    text = " ".join(re.sub(r"[\[\]…]", " ", text).split())
    choice = re.search(r"[\w-]+(?:\|[\w-]+)+", text)
    for one in choice[0].split("|") if choice else [""]:
        yield text.replace(choice[0], one) if choice else text


ALL = sorted({one for command in named() for one in variants(command)})
MEASURING = [one for one in ALL if one.split()[0] == "bench"]
TYPED = [one for one in ALL if one not in MEASURING and one not in ELSEWHERE]


def filled(command: str) -> list[str]:
    """The words of the command, with values in the places that a person fills, and rows of which they speak."""
    execution = start("TEST", [[NewJob("a.job", job_id="a")]]).execution.pk
    values = VALUES | {"ID": str(execution), "EXECUTION_ID": str(execution)}
    if command.startswith("harbor actions"):
        action = asked(vendor_type="TEST")
        if "--resume" in command:
            stop_action(action.pk)
        values |= {"ACTION": str(action.pk), "ID": str(action.pk)}
    words = " ".join(values.get(word, word) for word in command.split()).split()
    if "--release" in command.split():
        quarantine([execution], 5, {execution: "a row is bad"})
    if "--watch" in words:
        words.append("--json")  # without it, it needs a terminal
    if words == ["shell"]:
        words += ["--command", "pass"]  # the same
    is_act = words[:2] == ["harbor", "delete"] or ("FILTER" in command and words[1] != "list")
    return [*words, "--yes"] if is_act else words


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run it as manage.py does, in this process; return its exit code and what it says of a failure."""
    try:
        Utility(["manage.py", *words]).execute()
    except SystemExit as end:
        return int(str(end.code or 0)), capsys.readouterr().err
    return 0, ""


@pytest.mark.usefixtures("database", "redis")
@pytest.mark.parametrize("command", TYPED)
def test_a_command_that_a_page_names_can_be_typed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "api.md"
    copy.write_text(pages.read("docs/api.md"), encoding="utf-8")
    monkeypatch.setattr(api_docs, "PAGE", copy)
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
    bench: BaseCommand = load_command_class(COMMANDS["bench"], "bench")
    parser = bench.create_parser("manage.py", "bench")
    words = [VALUES.get(word, word) for word in command.split()[1:]]
    if words == ["--help"]:
        with pytest.raises(SystemExit, match=r"^0$"):
            parser.parse_args(words)
        assert "--executions" in capsys.readouterr().out
    else:
        parser.parse_args(words)


def test_there_are_commands_to_type() -> None:
    """Else a change of how they are found would let every command pass."""
    assert len(TYPED) > 60
    assert len(MEASURING) > 15
    assert {"harbor status --watch --interval SECONDS --times N", "alive beat", "migrate"} < set(TYPED)
    assert ELSEWHERE.keys() <= set(ALL)
