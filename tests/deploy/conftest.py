"""The image's tree, made by the steps of the Dockerfile, without an engine."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.deploy.container import Image
from tests.deploy.dockerfile import DOCKERFILE, ROOT, stages
from tests.terminal import ran

BUILD, _ = stages(DOCKERFILE.read_text(encoding="utf-8"))
HOME = BUILD.only("WORKDIR").rest
VENV = "/opt/venv"


def copy_sources(tree: Path) -> Path:
    """Copy what the Dockerfile copies, with the bytecode that is there."""
    home = Path(f"{tree}{HOME}")
    for source, target in BUILD.sources:
        there = home / target
        there.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, there, dirs_exist_ok=True)
        else:
            shutil.copy2(ROOT / source, there)
    return home


def run_steps(tree: Path) -> None:
    """Run what the Dockerfile runs, with the Python of the tests as the Python of the base image."""
    home = Path(f"{tree}{HOME}")
    of_pip = {name: value for name, value in os.environ.items() if re.match(r"PIP_|HOME$|\w+_proxy$", name, re.I)}
    environ = {**of_pip, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    for one in BUILD.every("RUN"):
        command = one.rest.replace(VENV, f"{tree}{VENV}")
        done = ran(["sh", "-c", command], folder=home, env=environ, seconds=1200)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def link_packages(tree: Path) -> Path:
    """Make an environment that sees what requirements.txt names and needs, and no other package, by links to the
    packages of the tests. Return the folder that the links lead to."""
    venv = Path(f"{tree}{VENV}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", venv], check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    for distribution in _needed(ROOT / "requirements.txt"):
        files = distribution.files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (packages / top).is_symlink():
                (packages / top).symlink_to(Path(str(distribution.locate_file(top))))
    return Path(importlib.metadata.distribution("django").locate_file(""))  # type: ignore[arg-type]


def _needed(requirements: Path) -> Iterator[importlib.metadata.Distribution]:
    waiting = [
        Requirement(line.partition("#")[0])
        for line in requirements.read_text(encoding="utf-8").splitlines()
        if line.partition("#")[0].strip()
    ]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        one = waiting.pop()
        if (key := (one.name.lower(), frozenset(one.extras))) in seen:
            continue
        seen.add(key)
        distribution = importlib.metadata.distribution(one.name)
        yield distribution
        for text in distribution.requires or []:
            needed = Requirement(text)
            extras = [{"extra": extra} for extra in ("", *one.extras)]
            if needed.marker is None or any(needed.marker.evaluate(extra) for extra in extras):
                waiting.append(needed)


@pytest.fixture
def make_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], Image]]:
    """Make the image's tree: `installed` runs the steps of the Dockerfile, which needs a package index; else the
    packages are those of the tests."""
    made: list[Image] = []

    def make(installed: bool) -> Image:
        tree = tmp_path_factory.mktemp("image")
        homes = {Path(sys.base_prefix), Path(sys.base_prefix).resolve(), Path(sys.executable).resolve().parents[1]}
        folders = sorted(home for home in homes if not home.is_relative_to("/usr"))
        copy_sources(tree)
        if installed:
            run_steps(tree)
        else:
            folders.append(link_packages(tree))
        made.append(Image(tree, folders))
        return made[-1]

    yield make
    for image in made:
        image.end()
        for folder in [image.tree, *image.tree.rglob("*/")]:
            if not folder.is_symlink():
                folder.chmod(0o755)
        shutil.rmtree(image.tree)


def protect(tree: Path) -> None:
    """Take the right to write from the account of the tests. Programs of root run as another account."""
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222 | 0o444 | (0o111 if path.is_dir() else 0))
