"""What the API takes and answers. The text here is the reference that `/api/v1/docs` shows."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, JsonValue, StringConstraints

from executions.status import MAX_ID, MAX_REVISION, MAX_VENDOR, Status

MAX_TASKS = 10_000
MAX_REPORTS = 10_000
MAX_MESSAGE = 10_000

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
Attributes = dict[str, JsonValue]
StatusName = Literal["Pending", "Scheduled", "Running", "Stopped", "Error", "Success"]


class Given(Schema):
    """What a caller sends. A field that is not known is an error, because it is a misspelling."""

    model_config = ConfigDict(extra="forbid")


class NewTaskIn(Given):
    job_id: Annotated[str, StringConstraints(max_length=64)] = ""
    extra_attrs: Attributes = Field(default_factory=dict)


class NewTasksIn(Given):
    tasks: Annotated[list[NewTaskIn], Field(min_length=1, max_length=MAX_TASKS)]


class NewExecutionIn(Given):
    vendor_type: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_VENDOR, pattern=r"^[^:\x00]*$"),
        Field(examples=["REPLICATION"], description="What the execution is. Any text without a colon."),
    ]
    vendor_id: Annotated[int, Field(ge=-MAX_ID - 1, le=MAX_ID)] = 0
    trigger: Annotated[str, StringConstraints(max_length=16), Field(examples=["MANUAL"])] = "MANUAL"
    extra_attrs: Attributes = Field(default_factory=dict)
    tasks: Annotated[list[NewTaskIn], Field(default_factory=list, max_length=MAX_TASKS)]


class ExecutionOut(Schema):
    id: int
    vendor_type: str
    vendor_id: int
    status: str = Field(examples=["Running"], description=f"One of {', '.join(Status.values)}.")
    status_message: str
    trigger: str
    extra_attrs: Attributes
    start_time: datetime
    update_time: datetime
    end_time: datetime | None = Field(description="When its last task ended. Null until it has ended.")
    revision: int = Field(description="Grows by one with each change of status or end.")


class ExecutionDetail(ExecutionOut):
    counts: dict[str, int] = Field(description="How many tasks have each status.", examples=[{"Running": 3}])
    tasks: int
    progress: float = Field(description="The share of tasks that have ended, from 0 to 1.")
    quarantine: str | None = Field(
        description="Why it is not refreshed. Null unless its refresh failed too often."
    )


class CreatedExecution(ExecutionOut):
    task_ids: list[int] = Field(description="In the order in which the tasks were given.")


class CreatedTasks(Schema):
    task_ids: list[int] = Field(description="In the order in which the tasks were given.")


class TaskOut(Schema):
    id: int
    execution_id: int
    vendor_type: str
    job_id: str
    status: str
    status_revision: int
    status_message: str
    run_count: int
    extra_attrs: Attributes
    creation_time: datetime
    start_time: datetime | None
    update_time: datetime
    end_time: datetime | None


class StatusChangeOut(Schema):
    revision: int
    from_status: str = Field(serialization_alias="from")
    to_status: str = Field(serialization_alias="to")
    at: datetime


class FinishIn(Given):
    status: Literal["Success", "Error"]
    message: Annotated[str, StringConstraints(max_length=MAX_MESSAGE, pattern=r"^[^\x00]*$")] = ""


class OneReportIn(Given):
    status: str = Field(examples=["Running"], description=f"One of {', '.join(Status.values)}.")
    revision: int = Field(
        0,
        description="The number of the run: a report of an older run changes nothing. Unix seconds of its start "
        f"are a good number. At most {MAX_REVISION}.",
    )
    message: Annotated[str | None, Field(max_length=MAX_MESSAGE)] = None
    earlier_runs: int = Field(0, description="How many runs there were before this one, if the runner counts.")


class ReportIn(OneReportIn):
    task_id: int


class ReportsIn(Given):
    reports: Annotated[list[ReportIn], Field(max_length=MAX_REPORTS)]


class ReportResult(Schema):
    position: int = Field(description="The index of the report in the request, from 0.")
    task_id: int
    result: Literal["applied", "unchanged", "refused"]
    reason: str | None = None


class ReportsOut(Schema):
    applied: int
    unchanged: int
    refused: int
    results: list[ReportResult]


class Page(Schema):
    next: str | None = Field(
        description="The cursor of the next page. Null: this page is the last. A page may hold fewer items than "
        "the limit, even none, and not be the last."
    )


class ExecutionPage(Page):
    items: list[ExecutionOut]


class TaskPage(Page):
    items: list[TaskOut]


class HistoryPage(Page):
    items: list[StatusChangeOut]


def as_dict(row: Any, schema: type[Schema]) -> dict[str, Any]:
    """The fields of a row that a schema has."""
    return {name: getattr(row, name) for name in schema.model_fields}
