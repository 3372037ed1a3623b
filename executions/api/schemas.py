"""What the API takes and answers. The text here is the reference that `/api/v1/docs` shows.

The models are Pydantic's own and not Ninja's Schema, which calls Python for each object that it reads: 10,000
reports took two thirds longer.
"""

import re
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal

from ninja import Path
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    create_model,
)

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.lifecycle.creation import MAX_JOB_ID
from harbor_refresh.executions.queries.filters import MAX_TRIGGER
from harbor_refresh.executions.status import MAX_EARLIER_RUNS, MAX_ID, MAX_REVISION, MAX_VENDOR, Status

MAX_TASKS = 10_000
MAX_REPORTS = 10_000
MAX_MESSAGE = 10_000
NO_NUL = r"^[^\x00]*$"
NUMBER = re.compile(r"\s*[-+]?[\d._]+(?:e[-+]?\d+)?\s*", re.IGNORECASE)


def _not_a_number(value: Any) -> Any:
    if isinstance(value, int | float) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise ValueError("takes a date and a time with its zone, such as 2026-01-31T12:00:00Z")
    return value


def _a_number(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("takes a whole number")
    return value


def _vendor_id(value: Any) -> int | str:
    """A whole number, which JSON may write as 7.0, or text."""
    whole = isinstance(value, float) and value.is_integer()
    try:
        return vendor_keys.key_of(int(value) if whole else value)
    except Refused as exc:
        raise ValueError(str(exc).removeprefix("vendor_id ")) from exc


Id = Annotated[int, Field(ge=1, le=MAX_ID)]
ExecutionId = Annotated[Id, Path(description="The id of the execution.")]
TaskId = Annotated[Id, Path(description="The id of the task.")]
Attributes = Annotated[
    dict[str, JsonValue], Field(examples=[{"repository": {"name": "library/app"}}], description="A JSON object.")
]
#: What is answered. Harbor's column may hold JSON of any kind, and a page must not fail for one row.
StoredAttributes = Annotated[
    JsonValue,
    Field(
        examples=[{"repository": {"name": "library/app"}}],
        description="A JSON object.",
        json_schema_extra={"type": "object"},
    ),
]
HARBORS = "May be null if the service is attached to a Harbor."
#: A whole number in a body. 7.0 is one in JSON. Pydantic alone would also take `"7"` and true, or refuse 7.0.
Whole = Annotated[int, Field(strict=False), BeforeValidator(_a_number)]
VendorNumber = Annotated[int, Field(ge=-MAX_ID - 1, le=MAX_ID)]
VendorText = Annotated[str, Field(min_length=1, max_length=vendor_keys.MAX_KEY)]
VendorId = Annotated[VendorNumber | VendorText, BeforeValidator(_vendor_id)]
#: A date and a time with its zone. Pydantic alone would also take a number, as seconds since 1970.
Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_not_a_number)]
StatusName = Literal["Pending", "Scheduled", "Running", "Stopped", "Error", "Success"]


class Given(BaseModel):
    """What a caller sends. A field that is not known is an error, because it is a misspelling."""

    model_config = ConfigDict(extra="forbid")


class Body(Given):
    """JSON that a caller sends. Its types are those of JSON: neither `"yes"` nor 1 is true. Numbers: `Whole`."""

    model_config = ConfigDict(strict=True)


class Conditions(BaseModel):
    """What a list and an action choose executions by. Each adds more."""

    vendor_type: str = Field("", max_length=MAX_VENDOR, examples=["REPLICATION"])
    vendor_id: VendorId | None = Field(None, description="A number, or text such as a UUID.")
    trigger: str = Field("", max_length=MAX_TRIGGER)
    started_after: Moment | None = Field(None, description="With its zone: 2026-01-31T12:00:00Z.")
    started_before: Moment | None = None


class NewTaskIn(Body):
    job_id: Annotated[
        str,
        StringConstraints(max_length=MAX_JOB_ID, pattern=NO_NUL),
        Field(examples=["5f2c"], description="The runner's own name for the job."),
    ] = ""
    extra_attrs: Attributes = Field(default_factory=dict)


class NewTasksIn(Body):
    tasks: Annotated[list[NewTaskIn], Field(min_length=1, max_length=MAX_TASKS)]


class NewExecutionIn(Body):
    vendor_type: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_VENDOR, pattern=r"^[^:\x00]*$"),
        Field(examples=["REPLICATION"], description="The kind of work: any text without a colon."),
    ]
    vendor_id: VendorId = Field(
        0,
        examples=[7],
        description='The object of the work, such as the id of a policy: a number or text. `"7"` counts as 7.',
    )
    trigger: str = Field("MANUAL", max_length=MAX_TRIGGER, pattern=NO_NUL, examples=["MANUAL"])
    extra_attrs: Attributes = Field(default_factory=dict)
    tasks: Annotated[list[NewTaskIn], Field(default_factory=list, max_length=MAX_TASKS)]


#: What an item of a list has. `extra_attrs` is left out, because it may take 2 MB, and a page has 500 items.
class ExecutionItem(BaseModel):
    id: int = Field(examples=[17])
    vendor_type: str = Field(examples=["REPLICATION"])
    vendor_id: int = Field(
        examples=[7], description="If text was given, a negative number that is derived from it: see `vendor_key`."
    )
    vendor_key: str = Field(examples=["7"], description="`vendor_id` as text, or the text that was given instead.")
    status: str = Field(examples=["Running"], description=f"One of {', '.join(Status.values)}.")
    status_message: str = Field(examples=[""])
    trigger: str = Field(examples=["MANUAL"])
    start_time: datetime | None = Field(description=f"When it was created. {HARBORS}")
    update_time: datetime | None = Field(description=f"When its status or end last changed. {HARBORS}")
    end_time: datetime | None = Field(examples=[None], description="When its last task ended. Null before.")
    revision: int = Field(examples=[0], description="Grows by one with each change of status or end.")


class ExecutionOut(ExecutionItem):
    extra_attrs: StoredAttributes


class ExecutionDetail(ExecutionOut):
    counts: dict[str, int] = Field(
        description="The number of tasks by status.", examples=[{"Running": 1, "Success": 3}]
    )
    tasks: int = Field(examples=[4])
    progress: float = Field(examples=[0.75], description="The share of tasks that have ended, from 0 to 1.")
    quarantine: str | None = Field(
        examples=[None], description="The reason for its quarantine. Null if it is not in quarantine."
    )


class CreatedTasks(BaseModel):
    task_ids: list[int] = Field(examples=[[91, 92]], description="In the order in which the tasks were given.")


class CreatedExecution(CreatedTasks, ExecutionOut):
    pass


class TaskItem(BaseModel):
    id: int = Field(examples=[91])
    execution_id: int = Field(examples=[17])
    vendor_type: str = Field(examples=["REPLICATION"])
    job_id: str = Field(examples=["5f2c"])
    status: str = Field(examples=["Running"], description=f"One of {', '.join(Status.values)}.")
    status_revision: int = Field(examples=[1769860800], description="The run number, as it was reported.")
    status_message: str = Field(examples=[""])
    run_count: int = Field(
        examples=[1], description="Its runs, as its runner counts them; of a job, the runs before this one."
    )
    creation_time: datetime | None = Field(description=f"When it was created. {HARBORS}")
    start_time: datetime | None = Field(description="When its last run began.")
    update_time: datetime | None = Field(description=f"When it last changed. {HARBORS}")
    end_time: datetime | None = Field(examples=[None], description="When its last run ended. Null until then.")


class TaskOut(TaskItem):
    extra_attrs: StoredAttributes


class StatusChangeOut(BaseModel):
    revision: int = Field(examples=[1])
    from_status: str = Field(examples=["Running"], serialization_alias="from")
    to_status: str = Field(examples=["Success"], serialization_alias="to")
    at: datetime


class FinishIn(Body):
    status: Literal["Success", "Error"]
    message: Annotated[str, StringConstraints(max_length=MAX_MESSAGE, pattern=NO_NUL)] = ""


REVISION = (
    "The run number, from 0 to "
    f"{MAX_REVISION}. Reports of older runs change nothing. The start of the run in Unix seconds works well."
)
EARLIER_RUNS = "The number of runs before this one, if the runner counts them."


class AttributesIn(Body):
    extra_attrs: Attributes = Field(description="The new attributes, which replace all existing ones.")


class OneReportIn(Body):
    status: str = Field(
        examples=["Running"],
        description=f"One of {', '.join(Status.values)}.",
        json_schema_extra={"enum": list(Status.values)},
    )
    revision: Whole = Field(
        0,
        examples=[1769860800],
        description=REVISION,
        json_schema_extra={"minimum": 0, "maximum": MAX_REVISION},
    )
    message: Annotated[str | None, Field(max_length=MAX_MESSAGE)] = Field(
        None,
        examples=["copied 3 of 8 blobs"],
        description="Null keeps the current message of the task.",
    )
    earlier_runs: Whole = Field(
        0, description=EARLIER_RUNS, json_schema_extra={"minimum": 0, "maximum": MAX_EARLIER_RUNS}
    )


class ReportIn(OneReportIn):
    """A report with a bad value is refused; the other reports of the request are not."""

    task_id: Whole = Field(examples=[91])
    status: str = Field(examples=["Running"], description=f"One of {', '.join(Status.values)}.")
    revision: Whole = Field(0, examples=[1769860800], description=REVISION)
    earlier_runs: Whole = Field(0, description=EARLIER_RUNS)


class ReportsIn(Body):
    reports: Annotated[list[ReportIn], Field(max_length=MAX_REPORTS)]


class ReportResult(BaseModel):
    position: int = Field(examples=[0], description="The index of the report in the request, from 0.")
    task_id: int = Field(examples=[91])
    result: Literal["applied", "unchanged", "refused"]
    reason: str | None = Field(None, examples=[None], description="Why it was refused.")


class ReportsOut(BaseModel):
    applied: int = Field(examples=[1])
    unchanged: int = Field(examples=[0])
    refused: int = Field(examples=[0])
    results: list[ReportResult]


class Page(BaseModel):
    next: str | None = Field(
        examples=[None],
        description="The cursor of the next page; null on the last page. Any page may hold fewer items than the "
        "limit, or none.",
    )


@cache
def page_of(item: type[BaseModel]) -> type[BaseModel]:
    """Make the model of a page of such items. The description of the API names it: TaskPage for TaskItem."""
    name = "HistoryPage" if item is StatusChangeOut else re.sub("(Item|Out)$", "Page", item.__name__)
    return create_model(name, __base__=Page, items=list[item])  # type: ignore[valid-type]


def as_dict(row: Any, schema: type[BaseModel]) -> dict[str, Any]:
    """The fields of a row that a schema has."""
    return {name: getattr(row, name) for name in schema.model_fields}
