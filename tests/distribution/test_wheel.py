"""The wheel in environments that were empty before: what it brings, and what it needs."""

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.distribution.environments import Environment, build, clean, copied
from tests.distribution.fixtures import Make
from tests.distribution.metadata import ROOT, project
from tests.terminal import ran

pytestmark = pytest.mark.slow

#: The packages that each extra brings and our modules import, and the modules that cannot be imported without it.
EXTRAS = {
    "admin": ({"unfold"}, ("executions.admin", "tasks.admin")),
    "beat": ({"django_celery_beat"}, ("tasks.pipeline.beat",)),
    "flower": ({"flower", "prometheus_client"}, ("flower",)),
    "http": (
        {"ninja", "pydantic", "httpx2", "httpcore2", "standardwebhooks"},
        (
            "client",
            "executions.api",
            "executions.news.deliveries.messages",
            "executions.news.deliveries.sender",
            "tasks.api",
            "tasks.jobs.report_target",
            "web.api",
            "web.metrics",
            "web.probes",
        ),
    ),
    "prometheus": ({"prometheus_client"}, ("web.probes",)),
}
#: Modules for a project that has the package anyway: fixtures for its tests, and a backend of its framework, which
#: is in Django from 6.0 on.
OF_THE_PROJECT = {"tasks_backend": "django_tasks", "testing.fixtures": "pytest"}
PACKAGES = {extra: packages for extra, (packages, _) in EXTRAS.items()}
USE = """
from harbor_refresh import Handle, TrackedJob, start, stard

reveal_type(start)
reveal_type(start("REPLICATION", jobs=[]).progress().counts)
start(jobs=[])


def job(job: Handle) -> None:
    job.chek_in("layer 3 of 7")
"""


def lacking(environment: Environment, cwd: Path, hidden: set[str]) -> dict[str, str]:
    program = Path(__file__).with_name("import_everything.py")
    found: dict[str, str] = json.loads(environment.run(program, json.dumps(sorted(hidden)), cwd=cwd))
    return {name.removeprefix("harbor_refresh."): package for name, package in found.items()}


def not_promised(found: dict[str, str], extras: set[str]) -> dict[str, str]:
    """Modules that cannot be imported although these extras are installed, or for want of another package."""

    def needs(name: str) -> set[str]:
        """The extras that the module needs and that are not installed."""
        return {
            one
            for one, (_, modules) in EXTRAS.items()
            if one not in extras and any(f"{name}.".startswith(f"{module}.") for module in modules)
        }

    return {
        name: package
        for name, package in found.items()
        if OF_THE_PROJECT.get(name) != package and not any(package in PACKAGES[extra] for extra in needs(name))
    }


def of_the_checkout() -> list[str]:
    """The files of the package by their names in the wheel. The servers of `make up` stay in the checkout."""
    files = (
        Path(folder, name).relative_to(ROOT)
        for folder, _, names in os.walk(ROOT / "harbor_refresh", followlinks=True)
        for name in names
    )
    return sorted(
        str(one)
        for one in files
        if "__pycache__" not in one.parts and one.parts[:2] != ("harbor_refresh", "local")
    )


def test_the_wheel_has_one_top_level_name_and_its_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        metadata = message_from_bytes(opened.read("harbor_refresh-0.1.0.dist-info/METADATA"))
    described = [name for name in names if name.startswith("harbor_refresh-0.1.0.dist-info/")]
    assert wheel.name == "harbor_refresh-0.1.0-py3-none-any.whl"
    assert sorted(set(names) - set(described)) == of_the_checkout()
    assert {"harbor_refresh/executions/sql/refresh_executions.sql", "harbor_refresh/tasks/jobs/__init__.py"} < set(
        names
    )
    assert "harbor_refresh-0.1.0.dist-info/licenses/LICENSE" in described
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Provides-Extra") == list(project()["optional-dependencies"])


def test_an_sdist_builds_the_same_wheel(wheel: Path, environment: Make, tmp_path: Path) -> None:
    builder = environment("")
    subprocess.run([builder.python, "-m", "pip", "install", "-q", "setuptools>=77"], check=True)
    program = f"from setuptools.build_meta import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    name = builder.run("-c", program, cwd=copied(tmp_path / "source")).splitlines()[-1]
    again = build(tmp_path / "wheels", tmp_path / name)
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        contents = {name: one.read(name) for name in one.namelist() if name.endswith((".py", ".sql", ".lua"))}
        assert contents == {name: other.read(name) for name in contents}
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_an_editable_install_has_the_same_names(environment: Make, tmp_path: Path) -> None:
    source = copied(tmp_path / "source")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, env=clean())
    subprocess.run(
        [venv / "bin/pip", "install", "-q", "--no-deps", "-e", source],
        check=True,
        env=clean(),
        capture_output=True,
    )
    program = (
        "import importlib.util as u, harbor_refresh.tasks, harbor_refresh.executions as found\n"
        "print(found.__file__, [u.find_spec(one) for one in ('executions', 'tasks', 'settings')])"
    )
    printed = Environment(venv / "bin/python").run("-c", program, cwd=tmp_path)
    assert printed == f"{source / 'harbor_refresh/executions/__init__.py'} [None, None, None]\n"


@pytest.mark.parametrize("app", ["executions", "tasks"])
def test_the_folder_of_an_app_says_what_to_import(app: str) -> None:
    done = ran([sys.executable, "-c", f"import {app}"], env=clean())
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: write harbor_refresh.{app}:")


def test_without_extras_the_apps_can_be_imported(environment: Make, tmp_path: Path) -> None:
    bare = environment("")
    names = ("harbor_refresh", "executions", "tasks", "settings", "benchmarks", "examples", "tests")
    program = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])"
    assert bare.run("-c", program, cwd=tmp_path) == "['harbor_refresh']\n"

    found = lacking(bare, tmp_path, set())

    assert not_promised(found, set()) == {}
    assert {"executions.api.access", "flower.login", "tasks.pipeline.beat", "client"} <= found.keys()


def test_with_all_extras_every_module_can_be_imported(environment: Make, tmp_path: Path) -> None:
    assert lacking(environment("all"), tmp_path, set()) == OF_THE_PROJECT


@pytest.mark.parametrize("extra", EXTRAS)
def test_with_one_extra_its_modules_can_be_imported(environment: Make, tmp_path: Path, extra: str) -> None:
    """The packages of the other extras are hidden."""
    has = {extra, "http"} if extra == "prometheus" else {extra}
    hidden = set().union(*PACKAGES.values()) - set().union(*(PACKAGES[one] for one in has))
    assert not_promised(lacking(environment("all"), tmp_path, hidden), has) == {}


def test_a_type_checker_sees_the_types(environment: Make, tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    words: list[str | Path] = [
        "--python-executable",
        environment("all").python,
        "--cache-dir",
        tmp_path / "cache",
        "use.py",
    ]
    done = ran([sys.executable, "-m", "mypy", *words], folder=tmp_path, seconds=600)
    said = [line.removeprefix("use.py:") for line in done.stdout.splitlines()]
    revealed = said.pop(1)
    assert said == [
        '2: error: Module "harbor_refresh" has no attribute "stard"; maybe "start"?  [attr-defined]',
        '5: note: Revealed type is "dict[str, int]"',
        '6: error: Missing positional argument "vendor_type" in call to "start"  [call-arg]',
        '10: error: "Handle" has no attribute "chek_in"; maybe "check_in"?  [attr-defined]',
        "Found 3 errors in 1 file (checked 1 source file)",
    ]
    assert revealed.startswith('4: note: Revealed type is "def (vendor_type: str, ')
    assert revealed.endswith('-> harbor_refresh.tasks.jobs.tracked_execution.TrackedExecution"')
