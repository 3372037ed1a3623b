"""The spans `report` and `mark`, in the process that takes the reports."""

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from harbor_refresh.logs import context as log_context
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tracing import catalogue, contexts
from harbor_refresh.tracing.spans import CurrentSpan, begun, current


class ReportSpan(CurrentSpan):
    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None:
        executions = notes.get("executions", ())
        found = {
            catalogue.APPLIED: notes.get("applied", 0),
            catalogue.UNCHANGED: notes.get("unchanged", 0),
            catalogue.REFUSED: notes.get("refused", 0),
            **about(executions),
        }
        self.span.set_attributes(found)
        super().end(notes, error)


def about(execution_ids: Sequence[int]) -> dict[str, Any]:
    """Return how many executions there are, and the id of a single one."""
    found = {catalogue.EXECUTIONS: len(execution_ids)}
    return found | {catalogue.EXECUTION: execution_ids[0]} if len(execution_ids) == 1 else found


def begin_report(door: str) -> ReportSpan:
    """Begin the entry of the service if a caller sent its context; else a step of what goes on here."""
    is_entry = trace.get_current_span().get_span_context().is_remote
    attributes = {catalogue.DOOR: str(door)}
    if request := log_context.ids().get("request"):
        attributes[catalogue.REQUEST] = request
    return ReportSpan(begun("report", attributes, kind=SpanKind.SERVER if is_entry else SpanKind.INTERNAL))


def begin_mark(members: Sequence[str]) -> CurrentSpan | None:
    """Keep the context of the report beside its executions, before they are marked: a refresh may read it at any
    moment after. A mark without a sampled report is traced by no span."""
    report = current()
    if report is None:
        return None
    span = CurrentSpan(begun("mark", about(names.ids(members)), kind=SpanKind.PRODUCER))
    contexts.keep(members, report)
    return span
