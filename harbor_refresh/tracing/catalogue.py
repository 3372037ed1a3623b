"""The names of spans and of their attributes. The tables in docs/monitoring.md are compared with these."""

SPANS = {
    "report": "reports are applied, until their executions are marked, in the request or in a job's worker",
    "mark": "executions are put on the queue",
    "claim": "a tick has claimed the execution, and publishes it to the workers",
    "refresh": "a worker refreshes the execution and completes its claim; each attempt is a span",
    "merged": "the report was included in a refresh that is in the trace of a later report; this links to it",
    "write": "rows are locked, compared with their tasks and written, before the commit",
    "complete": "the execution leaves its claim",
    "refresh chunk": "a worker refreshes several executions, or one without a sampled report; a trace of its own",
}

PREFIX = "harbor_refresh."

DOOR = PREFIX + "door"
REQUEST = PREFIX + "request"
APPLIED = PREFIX + "reports.applied"
UNCHANGED = PREFIX + "reports.unchanged"
REFUSED = PREFIX + "reports.refused"
EXECUTIONS = PREFIX + "executions"
EXECUTION = PREFIX + "execution.id"
VENDOR = PREFIX + "execution.vendor_type"
NODE = PREFIX + "node"
BACKLOG = PREFIX + "backlog"
FAILED_BEFORE = PREFIX + "failed_before"
WAITED = PREFIX + "waited_seconds"
IN_BROKER = PREFIX + "in_broker_seconds"
REPORTS = PREFIX + "reports"
RESULT = PREFIX + "result"
FROM = PREFIX + "status.from"
TO = PREFIX + "status.to"
REVISION = PREFIX + "revision"
CHANGED = PREFIX + "changed"
OUTLIVED = PREFIX + "outlived"

#: The attribute, the spans that may have it, and its meaning.
ATTRIBUTES = (
    (DOOR, "report", "how the reports came: api, hook, job, retry, stop or code"),
    (REQUEST, "report", "the id of the request, as in the log"),
    (APPLIED, "report", "reports that changed their task"),
    (UNCHANGED, "report", "reports that were repeated, late or out of order"),
    (REFUSED, "report", "reports that could not be used"),
    (
        EXECUTIONS,
        "report, mark, claim, refresh, refresh chunk",
        "how many executions the step has, this one included",
    ),
    (EXECUTION, "report, mark, claim, refresh", "the id of the execution, if it is one"),
    (VENDOR, "claim, refresh", "its vendor type"),
    (NODE, "claim, refresh, refresh chunk", "the process, as in the log and in `harbor status --claims`"),
    (BACKLOG, "claim", "executions that waited when the batch was claimed"),
    (FAILED_BEFORE, "claim", "how often the refresh of this execution has failed before"),
    (WAITED, "claim", "from its last report to the claim, by the clock of Redis"),
    (IN_BROKER, "refresh", "from the claim until a worker took it over, by the clock of Redis"),
    (REPORTS, "refresh", "how many sampled reports it includes, 4 at most"),
    (
        RESULT,
        "refresh",
        "`changed`, `unchanged`, `failed`, or `locked` by another transaction; the last two are tried again",
    ),
    (FROM, "refresh", "the status before, if it changed"),
    (TO, "refresh", "the status after, if it changed"),
    (REVISION, "refresh", "the revision of the execution, if it changed, as in its history"),
    (CHANGED, "refresh chunk, write", "how many executions changed"),
    (OUTLIVED, "complete", "executions of the claim that had been recovered meanwhile"),
)
