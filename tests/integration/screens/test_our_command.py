"""`manage.py harbor_refresh COMMAND`, for projects that have commands of the same names."""

import json

import pytest
from django.core.management import ManagementUtility, get_commands

from harbor_refresh.tasks.management.commands.harbor_refresh import commands


def run(*words: str) -> int | str | None:
    try:
        ManagementUtility(["manage.py", "harbor_refresh", *words]).execute()
    except SystemExit as exc:
        return exc.code
    return 0


def test_it_knows_every_command_of_ours() -> None:
    ours = {name for name, app in get_commands().items() if app.startswith("harbor_refresh")}
    assert set(commands()) == ours - {"harbor_refresh"}
    assert {"sweep", "reconcile", "refresh_jobs", "doctor"} <= ours


def test_a_command_runs_with_its_arguments(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reconcile", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["marked"] == 0


@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), ([], 2), (["migrate"], 2)])
def test_without_one_of_ours_it_lists_them(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == code
    said = capsys.readouterr()
    assert "commands: alive, api_docs, api_token, attach, doctor, executions, reconcile" in said.out + said.err
    assert bool(said.out) is (code == 0)
