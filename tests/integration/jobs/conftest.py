"""What tests of jobs may ask for: an outbox in the place of the broker, ends that are written at once, and a core
that takes reports."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest
from pytest_django import Settings

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.jobs import report_target, sender
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.running import tracked, writer
from harbor_refresh.tasks.pipeline.per_process import BatchThread, PerProcess
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.report_receiver import Target, target
from tests.integration.jobs.sample_jobs import AtOnce, Outbox, beats


@pytest.fixture
def outbox(monkeypatch: pytest.MonkeyPatch) -> Outbox:
    box = Outbox()
    monkeypatch.setattr(sender, "_publish", box.publish)
    monkeypatch.setattr(sender.publisher, "get", lambda: SimpleNamespace(put=box.publish))
    return box


@pytest.fixture
def worker(database: str) -> None:
    """This process is a worker."""
    beats(this_worker.id)


@pytest.fixture
def program(database: str) -> Program:
    """A client of the API that may read."""
    return Program(token(Scope.READ))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> AtOnce:
    """Ends of runs in this process are written by the thread that runs them, and not a moment later by another."""
    its = AtOnce()
    monkeypatch.setattr(writer.of_this_process, "get", lambda: its)
    monkeypatch.setattr(tracked, "PAUSE_SECONDS", 0)
    return its


@pytest.fixture
def core(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    """Reports of jobs go there."""
    with target() as its_core:
        settings.REFRESH_REPORT_URL = its_core.url
        settings.REFRESH_REPORT_AUTHORIZATION = "Harbor-Secret abc"
        monkeypatch.setattr(pacing, "REPORT_TIMEOUT_SECONDS", 60)
        monkeypatch.setattr(report_target, "SECONDS", 600.0)  # a slow machine is no slow target
        its_poster = partial(BatchThread, "poster", report_target._post)
        monkeypatch.setattr(report_target, "poster", PerProcess(its_poster))
        report_target.client.cache_clear()
        yield its_core
        report_target.poster.stop()
        report_target.client().close()
        report_target.client.cache_clear()
