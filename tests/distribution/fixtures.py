"""The wheel, built once, and environments with it, each made once."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests import matrix
from tests.distribution.environments import Environment, build, copied, install
from tests.distribution.metadata import declared, pinned

Make = Callable[..., Environment]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return build(folder / "dist", copied(folder / "source"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Make an environment with the wheel and its extras: "", "http" or "admin,beat"; and with packages of its own.
    With PostgreSQL's library, because a machine may have none."""

    @cache
    def make(extras: str, versions: str = "pinned", also: tuple[str, ...] = ()) -> Environment:
        wanted = [
            f"harbor-refresh[{extras}] @ {wheel.as_uri()}" if extras else str(wheel),
            "psycopg[binary]",
            *also,
        ]
        python, constraints = VERSIONS[versions]()
        return install(tmp_path_factory.mktemp("environment"), python, wanted, "\n".join(constraints))

    return make


def _pinned() -> tuple[Path, list[str]]:
    return Path(sys.executable), [f"{one.name}{one.specifier}" for one in pinned()]


def _oldest() -> tuple[Path, list[str]]:
    """The first version of each range."""
    limits = [(one.name, limit) for one in declared() for limit in one.specifier]
    return Path(sys.executable), [f"{name}=={limit.version}" for name, limit in limits if limit.operator == ">="]


def _newest() -> tuple[Path, list[str]]:
    """What pip chooses for the newest Python of this machine."""
    found = [python for version in matrix.VERSIONS if (python := matrix.find(version))]
    return (found or [Path(sys.executable)])[-1], []


def _django_6_and_celery_5_6() -> tuple[Path, list[str]]:
    """Django 6 takes Python 3.12 or newer."""
    python, _ = _newest()
    return python, ["Django>=6,<7", "celery~=5.6.0"]


def _django_6_1() -> tuple[Path, list[str]]:
    """Without the extra `beat`: django-celery-beat 2.9 refuses Django 6.1."""
    python, _ = _newest()
    return python, ["Django>=6.1,<6.2"]


#: A Python, and the constraints for its packages.
VERSIONS = {
    "pinned": _pinned,
    "oldest": _oldest,
    "newest": _newest,
    "Django 6 and Celery 5.6": _django_6_and_celery_5_6,
    "Django 6.1": _django_6_1,
}
