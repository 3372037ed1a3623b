"""Each signal has its log line, and the lines that operators grep for never change."""

import logging
from typing import Any

import pytest
from django.dispatch import Signal

from harbor_refresh.executions.lifecycle.reports import Refusal, Report
from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.executions.news import signals as signals_of_executions
from harbor_refresh.tasks.jobs.running.reaper import Reaped
from harbor_refresh.tasks.news import events, signals
from harbor_refresh.tasks.pipeline.reconciliation import Reconciled


@pytest.fixture(autouse=True)
def nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events are also counted and noted in the database, which is tested elsewhere."""
    monkeypatch.setattr(events, "add", lambda amounts: None)
    monkeypatch.setattr(events, "note", lambda kind, count: None)


def lines(caplog: pytest.LogCaptureFixture, signal: Signal, **values: Any) -> list[tuple[str, str]]:
    """What is logged when the signal is sent for real."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "harbor_refresh"):
        signal.send(sender=None, **values)
    return [(one.levelname, one.getMessage()) for one in caplog.records]


def test_every_signal_has_its_line() -> None:
    assert [
        name
        for name, one in {**vars(signals_of_executions), **vars(signals)}.items()
        if isinstance(one, Signal) and not one.receivers
    ] == []


def test_the_three_lines_operators_grep_for_are_word_for_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert lines(caplog, signals.claimed, count=100) == [("INFO", "Claimed 100 executions for processing")]
    assert lines(caplog, signals.refreshed, outcome=Refreshed(succeeded=100)) == [
        ("INFO", "Refresh outdate execution status done, 100 succeed, 0 failed")
    ]
    assert lines(caplog, signals.recovered, count=5) == [
        ("WARNING", "Recovered 5 stale executions from crashed instances")
    ]


def test_failures_are_logged_with_their_reason_but_not_a_thousand_times(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcome = Refreshed(succeeded=1, failed=dict.fromkeys(range(1, 1001), "cursed"))
    told = lines(caplog, signals.refreshed, outcome=outcome)
    assert told[0] == ("INFO", "Refresh outdate execution status done, 1 succeed, 1000 failed")
    assert told[1] == ("WARNING", "Execution 1 could not be refreshed: cursed")
    assert len(told) == 1 + signals.MAX_LINES


LINES: tuple[tuple[Signal, dict[str, Any], list[tuple[str, str]]], ...] = (
    (
        signals_of_executions.quarantined,
        {"execution_ids": [7], "reasons": {7: "cursed"}},
        [("ERROR", "Quarantined execution 7: cursed. Release it with: manage.py harbor quarantine --release 7")],
    ),
    (
        signals_of_executions.released_from_quarantine,
        {"execution_ids": [7, 8]},
        [("INFO", "Released 2 executions from quarantine for another try")],
    ),
    (
        signals_of_executions.closed_overdue,
        {"execution_ids": [7, 8]},
        [("WARNING", "Closed 2 open executions at their time limit: their producers did not close them")],
    ),
    (signals.reconciled, {"outcome": Reconciled(looked_at=5)}, []),
    (
        signals.reconciled,
        {"outcome": Reconciled(looked_at=5, drifted=3, waiting=2, marked=1)},
        [("WARNING", "Reconcile found 1 drifted executions and marked them")],
    ),
    (
        signals.reconciled,
        {"outcome": Reconciled(lease_lost=True)},
        [("WARNING", "Reconcile lost its lease to another pass and ended: it had stood still for too long")],
    ),
    (signals.reaped, {"outcome": Reaped()}, []),
    (signals.runs_released, {"count": 3}, [("WARNING", "Recovered jobs: 3 given back by dead processes")]),
    (
        signals.workers_died,
        {"names": ["one", "two"]},
        [("WARNING", "Dead nodes, whose jobs are released: one, two")],
    ),
)


@pytest.mark.parametrize(("signal", "values", "expected"), LINES)
def test_a_signal_writes_its_line_or_nothing_if_there_is_nothing_to_say(
    signal: Signal, values: dict[str, Any], expected: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    assert lines(caplog, signal, **values) == expected


def test_unusable_members_and_reports_are_logged_a_few_at_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = lines(caplog, signals.discarded, members=[b"\xff"] + [b"x" * 1000] * 9)
    assert told[0] == ("WARNING", "Dropped a member that cannot be read: b'\\xff'")
    assert told[-1] == ("WARNING", "Dropped 5 more members that cannot be read")
    assert len(told) == 6
    assert max(len(line) for _, line in told) < 200
    refusal = Refusal(3, Report(1, "Nope"), "unknown status 'Nope'")
    told = lines(caplog, signals_of_executions.refused, refusals=[refusal] * 7)
    assert told[0] == ("WARNING", "Refused report 3 of a batch: unknown status 'Nope'")
    assert told[-1] == ("WARNING", "Refused 2 more reports of that batch")
