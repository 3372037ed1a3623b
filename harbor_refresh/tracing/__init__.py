"""Traces: an optional follower of the steps of executions/news/steps.py, which makes spans of OpenTelemetry.

Nothing here is used unless REFRESH_TRACES is set, and only then opentelemetry is imported. No other package of the
service imports it. The queue is a set of ids and carries no contexts. Those of sampled reports wait beside it, in
a bounded hash, from before the mark until a refresh has included the report. A context that Redis forgot costs
its trace the end, and nothing else.
"""

from django.conf import settings


def connect() -> None:
    """Follow the steps of this process, if traces are on."""
    if getattr(settings, "REFRESH_TRACES", False):
        from harbor_refresh.tracing import spans, tracer

        tracer.connect()
        spans.connect()
