"""The wheel, built once, and environments with it, each made once."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.distribution.environments import Environment, build, install
from tests.distribution.metadata import lowest, pinned

Make = Callable[..., Environment]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Make an environment with the wheel and its extras ("" or "http" or "admin,beat"), in the versions of
    requirements.txt or in the lowest of each range. With PostgreSQL's library, which a machine may not have."""

    @cache
    def make(extras: str, oldest: bool = False) -> Environment:
        wanted = [f"harbor-refresh[{extras}] @ {wheel.as_uri()}" if extras else str(wheel), "psycopg[binary]"]
        constraints = lowest() if oldest else [f"{one.name}{one.specifier}" for one in pinned()]
        folder = tmp_path_factory.mktemp("environment")
        return install(folder, Path(sys.executable), wanted, "\n".join(constraints))

    return make
