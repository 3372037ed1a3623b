"""The follower of the steps: makes the spans of each, and never fails a step by trouble of its own."""

import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol

from harbor_refresh.executions.news import steps
from harbor_refresh.tracing import claim_spans, progress, refresh_spans, report_spans

log = logging.getLogger("harbor_refresh")


class Spans(Protocol):
    """The spans of one step. They are made when it begins, and ended with its notes and its exception."""

    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None: ...


#: What begins the spans of a step, from its facts. None: the step needs none.
BEGINNINGS: Mapping[str, Callable[..., Spans | None]] = {
    "report": report_spans.begin_report,
    "mark": report_spans.begin_mark,
    "claim": claim_spans.begin,
    "refresh": refresh_spans.begin,
    "refresh_at_once": refresh_spans.begin_at_once,
    "write": progress.begin_write,
    "complete": progress.begin_complete,
}


class FollowedStep:
    def __init__(self, name: str, facts: Mapping[str, Any]) -> None:
        self._begin = BEGINNINGS[name]
        self._facts = facts
        self._notes: dict[str, Any] = {}
        self._spans: Spans | None = None

    def __enter__(self) -> steps.Note:
        try:
            self._spans = self._begin(**self._facts)
        except Exception:
            _tell()
        return self._notes.update

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._spans:
                self._spans.end(self._notes, error)
        except Exception:
            _tell()


_told = False


def _tell() -> None:
    """Tell the first error of this process; the same fault would come with each report."""
    global _told  # noqa: PLW0603
    if not _told:
        _told = True
        log.error("A step could not be traced; the next ones are tried", exc_info=True)


def connect() -> None:
    steps.follow_with(FollowedStep)
