"""Fixtures for pytest: `pytest_plugins = ["harbor_refresh.testing.fixtures"]` in the conftest.py of a project."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harbor_refresh import testing


@pytest.fixture
def harbor_eager(db: None) -> Iterator[None]:
    """Each job runs at once in this test."""
    with testing.eager():
        yield


@pytest.fixture
def harbor_jobs(transactional_db: None) -> Iterator[None]:
    """A worker runs the jobs of this test, with a broker in the memory of its process."""
    with testing.worker():
        yield


@pytest.fixture
def fail_job() -> Iterator[Callable[..., None]]:
    """Make a job fail until the end of this test: `fail_job("shop.copy", times=2, with_=OSError("disk"))`."""
    with ExitStack() as until_the_end:

        def fail(name: str, **how: Any) -> None:
            until_the_end.enter_context(testing.fail_job(name, **how))

        yield fail
