"""Programs that tests need and no wheel brings: found on PATH, or installed as root by Debian's package manager.

A test that cannot have its program is skipped on a developer's machine, and the summary says how many and why.
In CI (the variable CI is set) it fails: a test that is skipped there proves nothing.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

#: The Debian packages of each program. Without fonts, a browser draws boxes.
PACKAGES = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "pgbouncer": "pgbouncer",
    "redis-server": "redis-server",
    "redis-cli": "redis-tools",
    "openssl": "openssl",
    "createdb": "postgresql",
    "rabbitmq-server": "rabbitmq-server",
    "chromium": "chromium fonts-dejavu-core",
    "go": "golang-go",
}
LOCK = Path(tempfile.gettempdir()) / "harbor-refresh-test-programs.lock"
INSTALL_SECONDS = 300
UPDATE = ["apt-get", "update", "-qq"]


def needs(program: str) -> Path:
    """Return the path of the program. Skips the test if it cannot be had; in CI, fails it."""
    path = _find(program)
    if path is None:
        _cannot_run(f"{program} is missing: apt-get install {PACKAGES[program]}")
    return path


def _cannot_run(told: str) -> NoReturn:
    """Skip the test; in CI, fail it."""
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)


@cache
def _find(program: str) -> Path | None:
    """Look for it; as root, install it. Processes of one test run install it one after the other."""
    if (there := shutil.which(program)) is None:
        with LOCK.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if shutil.which(program) is None:
                install(PACKAGES[program])
        there = shutil.which(program)
    return Path(there) if there else None


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: str) -> None:
    """Install them without what is only recommended, and without starting any. If that fails, they are missing; so
    are they if this user is not root."""
    if not _may_install():
        return
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages.split()]
    for command in (UPDATE, words):
        subprocess.run(
            command, env=quiet, check=False, timeout=INSTALL_SECONDS, capture_output=True, stdin=subprocess.DEVNULL
        )


def packaged_postgres() -> list[Path]:
    """The versioned folders of Debian and Red Hat, newest first; they are not on PATH."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    return sorted(folders, key=lambda folder: [int(one) for one in re.findall(r"\d+", str(folder))], reverse=True)
