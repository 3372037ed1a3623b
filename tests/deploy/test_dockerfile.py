"""The rules that the Dockerfile keeps, each of which prevents a known mistake, and what reaches the image."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.dockerfile import DOCKERFILE, IGNORE, ROOT, Stage, is_sent, stages
from tests.terminal import ran

TEXT = DOCKERFILE.read_text(encoding="utf-8")
BUILD, SERVICE = stages(TEXT)
STAGES = pytest.mark.parametrize("stage", [BUILD, SERVICE], ids=lambda stage: stage.name)
#: Words in the name of a variable that holds a secret.
SECRET = re.compile(r"PASS|SECRET|TOKEN|KEY|CREDENTIAL|AUTH", re.IGNORECASE)


def tracked(*paths: str) -> list[str]:
    command = ["git", "ls-files", "--", *paths]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


@STAGES
def test_a_stage_is_pinned_and_takes_named_files_no_secret_and_no_risky_step(stage: Stage) -> None:
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", stage.base)
    assert stage.base == BUILD.base, "an environment runs only with the Python that made it"
    assert stage.every("ADD") == []
    assert [source for source, _ in stage.sources if source in (".", "./", "*")] == []
    names = [name for word in ("ARG", "ENV") for one in stage.every(word) for name in one.pairs]
    assert [name for name in names if SECRET.search(name)] == []
    for one in stage.every("RUN"):
        assert not re.search(r"\bsudo\b|\bapt\b|curl|wget|[^|]\|[^|]|^cd ", one.rest), one.rest
    assert all(one.rest.startswith("/") for one in stage.every("WORKDIR"))


def test_the_service_runs_as_a_number_that_is_not_root_after_all_that_needs_root() -> None:
    user = SERVICE.only("USER")
    assert re.fullmatch(r"[1-9]\d{4,}:[1-9]\d{4,}", user.rest)
    after = SERVICE.instructions[SERVICE.instructions.index(user) :]
    assert {one.word for one in after} & {"RUN", "COPY"} == set()


def test_the_program_is_process_1_and_ends_warm() -> None:
    for word in ("ENTRYPOINT", "CMD"):
        assert SERVICE.only(word).is_exec_form, "a shell between would keep the signals"
    assert SERVICE.only("STOPSIGNAL").rest == "SIGTERM"
    health = SERVICE.only("HEALTHCHECK")
    assert "CMD [" in health.rest
    assert {"interval", "timeout", "start-period", "retries"} == set(health.flags)


def test_what_is_copied_is_sent_to_the_builder_and_nothing_else_is() -> None:
    ignored = IGNORE.read_text(encoding="utf-8")
    copied = [source.rstrip("/") for source, _ in BUILD.sources]
    there = tracked()
    wanted = {path for path in there if any(path == one or path.startswith(f"{one}/") for one in copied)}
    assert [one for one in copied if not any(path == one or path.startswith(f"{one}/") for path in there)] == []
    assert {path for path in there if is_sent(path, ignored)} == wanted
    private = (".env", ".secrets/redis_url", ".git/config", ".local/postgres/PG_VERSION")
    made = ("tasks/__pycache__/tick.cpython-311.pyc", "settings/base.pyc", "deploy/compose/x", ".venv/bin/python")
    assert [path for path in (*private, *made) if is_sent(path, ignored)] == []


def complaints(*command: str | Path) -> str:
    """Run a linter of the environment of the tests; return what it says."""
    program = Path(sys.executable).with_name(str(command[0]))
    done = ran([program, *command[1:]])
    return done.stdout + done.stderr


def test_hadolint_finds_nothing() -> None:
    assert complaints("hadolint", DOCKERFILE) == ""


def test_the_scripts_are_programs_for_any_posix_shell() -> None:
    scripts = sorted([*ROOT.glob("deploy/*/*.sh"), *Path(__file__).parent.glob("*.sh")])
    assert len(scripts) >= 5
    assert complaints("shellcheck", *scripts) == ""
    for path in scripts:
        assert path.read_text(encoding="utf-8").startswith("#!/bin/sh\n"), path
        assert path.parent == Path(__file__).parent or path.stat().st_mode & 0o111 == 0o111, path
