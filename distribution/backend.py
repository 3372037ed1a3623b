"""What pip calls to build the wheel (PEP 517): the files are copied and rewritten, and setuptools does the rest.

There is no editable install: the checkout runs from its own folders.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import build_meta

from distribution import copies

ROOT = Path(__file__).resolve().parent.parent
#: What the folder of the build has besides the package.
BESIDE = ("LICENSE", "README.md")


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    target = Path(wheel_directory).resolve()
    with prepared():
        return str(build_meta.build_wheel(str(target), config_settings))


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """An sdist has the rewritten files, so that it builds the same wheel with setuptools alone."""
    target = Path(sdist_directory).resolve()
    with prepared():
        return str(build_meta.build_sdist(str(target), config_settings))


@contextmanager
def prepared() -> Iterator[None]:
    """Work in a folder that is a plain project for setuptools."""
    with TemporaryDirectory(prefix="harbor-refresh-") as name, chdir(name):
        folder = Path(name)
        copies.write(ROOT, folder)
        for one in BESIDE:
            shutil.copyfile(ROOT / one, folder / one)
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        (folder / "pyproject.toml").write_text(plain(project), encoding="utf-8")
        yield


def plain(project: str) -> str:
    """Name setuptools in the place of this module."""
    named = re.sub(
        r'^build-backend = ".*"$', 'build-backend = "setuptools.build_meta"', project, flags=re.MULTILINE
    )
    return re.sub(r"^backend-path = .*\n", "", named, flags=re.MULTILINE)
