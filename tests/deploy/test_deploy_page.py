"""docs/deploy.md: its tables say what the files say, and its commands run as far as they can without an engine and
a cluster."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import yaml

from tests import pages
from tests.deploy.compose import COMPOSE, VARIABLE, loaded
from tests.deploy.dockerfile import ROOT
from tests.deploy.manifests import built, kubectl, pods
from tests.deploy.programs import OF_THE_IMAGE, PROGRAMS

PAGE = pages.read("docs/deploy.md")
COMMANDS = [words for line in pages.lines(PAGE) if (words := shlex.split(line, comments=True))]
IN_SENTENCES = [
    shlex.split(one) for one in pages.spans(PAGE) if re.match(r"(\w+=\S+ )?(docker|kubectl) \S+ ", one)
]
#: They need an engine or a cluster, which the machines of the tests have not. The page says so.
NEED_AN_ENGINE = [["docker", "build"], ["docker", "compose"]]
NEED_A_CLUSTER = [["kubectl", "apply"]]
NEED_A_CLUSTER += [
    ["kubectl", "-n", "harbor-refresh", verb] for verb in ("wait", "delete", "rollout", "port-forward")
]
#: The steps of the image: test_image.py runs them as the Dockerfile has them, and in its programs.
STEPS = [["deploy/image/install.sh"], ["PATH=/opt/venv/bin:$PATH"]]


def rows(header: str) -> dict[str, list[str]]:
    """The table with this first cell in its head: the names of its rows, and their other cells."""
    table = PAGE.split(f"\n| {header} |")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {cell[0]: cell[1:] for cell in cells}


def test_the_variables_of_the_image_are_documented_with_their_defaults() -> None:
    documented = {name.strip("`"): cells[0].strip("`") for name, cells in rows("variable").items()}
    assert documented == OF_THE_IMAGE | {"FLOWER_URL_PREFIX": ""}


def test_the_variables_of_compose_are_documented_with_their_defaults() -> None:
    text = COMPOSE.read_text(encoding="utf-8")
    used = {name: default for name, _, default in VARIABLE.findall(text) if name}
    documented: dict[str, str] = {}
    for names, cells in rows("variable of the shell, or of `.env`").items():
        defaults = [one.strip().strip("`").replace("none", "") for one in cells[0].split(";")]
        documented |= zip((name.strip("`") for name in names.split(", ")), defaults, strict=True)
    assert documented == used


def test_every_program_of_the_image_is_documented() -> None:
    assert {command.strip("`").split()[0] for command in rows("command")} == PROGRAMS


def test_every_overlay_is_documented() -> None:
    folders = ["base", *(f"overlays/{one.name}" for one in (ROOT / "deploy/kubernetes/overlays").iterdir())]
    assert {name.strip("`") for name in rows("overlay")} == set(folders)


def test_the_graces_of_the_page_are_those_of_the_files() -> None:
    compose = loaded({})["services"]["worker"]["stop_grace_period"].removesuffix("s")
    kubernetes = pods("base")["worker"]["spec"]["terminationGracePeriodSeconds"]
    told = re.findall(r"\((\d+) s in Compose, (\d+) s in Kubernetes\)", " ".join(PAGE.split()))
    assert told == [(compose, str(kubernetes))]


def begins(words: list[str], prefixes: list[list[str]]) -> bool:
    return any(words[: len(prefix)] == prefix for prefix in prefixes)


def test_every_command_runs_or_needs_what_is_not_here(tmp_path: Path) -> None:
    for name in ("deploy/compose", "deploy/kubernetes"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name)
    run = [words for words in COMMANDS if not begins(words, [*NEED_AN_ENGINE, *NEED_A_CLUSTER, *STEPS])]
    assert [words[0] for words in run] == [
        "deploy/compose/secrets.sh",
        "deploy/compose/secrets.sh",
        "kubectl",
        "kubectl",
        "kubectl",
    ]
    secrets, again, namespace, secret, build = run
    home = tmp_path / "copy"
    assert subprocess.run(secrets, cwd=home, check=False, capture_output=True).returncode == 0
    shutil.rmtree(home / ".secrets")
    assert subprocess.run(again, cwd=home, check=False, capture_output=True).returncode == 0
    dry = ("--dry-run=client", "--output=yaml")
    made = yaml.safe_load(kubectl(*namespace[1:], *dry, folder=home))
    assert (made["kind"], made["metadata"]["name"]) == ("Namespace", "harbor-refresh")
    made = yaml.safe_load(kubectl(*secret[1:], *dry, folder=home))
    assert set(made["data"]) == {"database_url", "redis_url", "secret_key", "redis_password"}
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("harbor-refresh", "harbor-refresh")
    assert list(yaml.safe_load_all(kubectl(*build[1:], folder=home))) == built("base")


def test_the_page_says_of_each_command_that_no_test_runs_that_it_was_not_run() -> None:
    (said,) = (one for one in PAGE.split("\n\n") if one.startswith("Not run, because"))
    named = set(pages.spans(said.partition("The other commands")[0]))
    engine = {" ".join(prefix) for prefix in NEED_AN_ENGINE}
    assert named == engine | {"kubectl", *(prefix[-1] for prefix in NEED_A_CLUSTER)}
    in_sentences = [words[1:] if "=" in words[0] else words for words in IN_SENTENCES]
    assert [words for words in in_sentences if not begins(words, [*NEED_AN_ENGINE, *NEED_A_CLUSTER])] == []


def test_the_steps_of_the_image_on_the_page_are_those_of_the_dockerfile() -> None:
    steps = [words for words in COMMANDS if begins(words, STEPS)]
    assert steps == [
        ["deploy/image/install.sh", "packages", "/opt/venv", "requirements.txt"],
        ["deploy/image/install.sh", "application", "/opt/venv"],
        ["PATH=/opt/venv/bin:$PATH", "deploy/image/start.sh", "web"],
        ["PATH=/opt/venv/bin:$PATH", "deploy/image/health.sh", "web"],
    ]
