"""The filter of executions: what the API's list, the actions on many, the admin and the commands choose by."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db.models import Case, Exists, F, Func, Model, OuterRef, Q, QuerySet, Subquery, TextField, Value, When
from django.db.models.functions import Cast
from django.db.models.lookups import IRegex, IsNull

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.models import Execution, Link, Task
from harbor_refresh.executions.status import MAX_ID, MAX_VENDOR, Status
from harbor_refresh.executions.text import is_text, is_whole, shown

MAX_TRIGGER = Execution._meta.get_field("trigger").max_length or 0
MAX_ATTRIBUTES = 5
MAX_PATH = 200
MAX_VALUE = 1_000
MAX_KEYS = 10
MAX_IDS = 1_000
#: Values of a list that people are shown.
SHOWN = 5
#: The escapes of NUL and of surrogates. Harbor writes no whole pair as escapes, so their pairs are not told apart.
NO_TEXT = r"\\u(0000|d[89a-f])"

Row = TypeVar("Row", bound=Model)


def has_jobs() -> Q:
    """The condition on executions that one of their tasks has a job, or that they have children, whose jobs are
    stopped and tried again with them. For each execution its tasks are looked at until one has a job: as a join,
    PostgreSQL may read all jobs and all tasks for a few executions."""
    first = Task.objects.filter(execution=OuterRef("pk"), job__isnull=False).values("pk")[:1]
    return Q(IsNull(Subquery(first), False)) | Q(Exists(Link.objects.filter(parent=OuterRef("pk"))))


def by_path(pairs: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return attributes by their paths. Raises Refused for a path that is there twice: one would be lost."""
    found: dict[str, str] = {}
    for path, text in pairs:
        if path in found:
            raise Refused(f"the attribute {shown(path)} is there twice; leave one out")
        found[path] = text
    return found


@dataclass(frozen=True)
class Filter:
    """A condition on executions. An empty field chooses all.

    `vendor_id`: a number, a UUID or text; the filter holds the number or the text that it means (vendor_keys.py).
    `attributes`: dotted paths into extra_attrs, with the text of the value there. `repository.name` is the key
    `name` in the object under `repository`; a part that is a number is also the index into an array. Numbers,
    true and false are compared as JSON writes them; null equals no text. `ids`: only these executions.
    `quarantined`: True for only those in quarantine, False for only those that are not. `has_jobs`: True for only
    those with a job or a child, False for only those without.
    """

    vendor_type: str = ""
    vendor_id: vendor_keys.Given | None = None
    statuses: Sequence[str] = ()
    trigger: str = ""
    started_after: datetime | None = None
    started_before: datetime | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[int] = ()
    quarantined: bool | None = None
    has_jobs: bool | None = None

    def __post_init__(self) -> None:
        if self.vendor_id is not None:
            object.__setattr__(self, "vendor_id", vendor_keys.key_of(self.vendor_id))
        for name in ("statuses", "ids"):
            if isinstance(value := getattr(self, name), tuple):
                object.__setattr__(self, name, list(value))
        for name, fits, takes in (
            ("vendor_type", is_text(self.vendor_type, MAX_VENDOR), f"at most {MAX_VENDOR} characters"),
            ("trigger", is_text(self.trigger, MAX_TRIGGER), f"at most {MAX_TRIGGER} characters"),
            ("statuses", _are_statuses(self.statuses), f"some of {', '.join(Status.values)}"),
            ("started_after", _is_moment(self.started_after), "a date and time with its zone"),
            ("started_before", _is_moment(self.started_before), "a date and time with its zone"),
            (
                "attributes",
                _are_attributes(self.attributes),
                f"at most {MAX_ATTRIBUTES} dotted paths with a text each",
            ),
            ("ids", _are_ids(self.ids), f"at most {MAX_IDS:,} whole numbers of at most 64 bits"),
            ("quarantined", isinstance(self.quarantined, bool | None), "true or false"),
            ("has_jobs", isinstance(self.has_jobs, bool | None), "true or false"),
        ):
            if not fits:
                raise Refused(f"{name} takes {takes}, and got {shown(getattr(self, name))}")

    @property
    def is_empty(self) -> bool:
        """Whether it chooses every execution."""
        return self == Filter()

    def apply(self, executions: QuerySet[Execution]) -> QuerySet[Execution]:
        """Return those of the executions that meet the condition."""
        lookups: dict[str, Any] = {
            "vendor_type": self.vendor_type or None,
            "status__in": self.statuses or None,
            "trigger": self.trigger or None,
            "start_time__gte": _utc(self.started_after),
            "start_time__lt": _utc(self.started_before),
            "pk__in": self.ids or None,
            "quarantine__isnull": None if self.quarantined is None else not self.quarantined,
        }
        if self.vendor_id is not None:
            lookups |= vendor_keys.lookups(self.vendor_id)
        executions = executions.filter(**{name: value for name, value in lookups.items() if value is not None})
        executions = with_attributes(executions, self.attributes)
        if self.has_jobs is not None:
            executions = executions.filter(has_jobs() if self.has_jobs else ~has_jobs())
        return executions

    def as_json(self) -> dict[str, Any]:
        """The fields that are set, as JSON can hold them."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value not in (None, "", [], {}):
                found[one.name] = value.isoformat() if isinstance(value, datetime) else value
        return found

    def as_text(self) -> str:
        """The fields that are set, for people: `vendor type SCAN, statuses Running or Pending`."""
        return ", ".join(_said(name, value) for name, value in self.as_json().items())

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Filter":
        """Read what `as_json` wrote."""
        moments = given.keys() & {"started_after", "started_before"}
        return cls(**{**given, **{name: datetime.fromisoformat(given[name]) for name in moments}})


def with_attributes(rows: QuerySet[Row], attributes: Mapping[str, str]) -> QuerySet[Row]:
    """Choose rows of executions or of tasks that have each of these texts at its path in their attributes."""
    chosen: QuerySet[Any] = rows
    for path, text in attributes.items():
        chosen = chosen.alias(attribute=_attribute(path)).filter(attribute=text)
    return chosen


def _attribute(path: str) -> Func | Case:
    """The text at a dotted path. It is SQL's own function, because Django's lookups would read a key such as
    `contains` as an operator."""
    keys = [Value(key) for key in path.split(".")]
    if not is_attached():
        return Func(F("extra_attrs"), *keys, function="jsonb_extract_path_text", output_field=TextField())
    # Harbor's column is json, which may hold what no text can: NUL, or half a surrogate pair
    found = Func(F("extra_attrs"), *keys, function="json_extract_path_text", output_field=TextField())
    return Case(When(~IRegex(Cast("extra_attrs", TextField()), NO_TEXT), then=found))


def _said(name: str, value: Any) -> str:
    words = name.replace("_", " ")
    if isinstance(value, Mapping):
        return ", ".join(f"{path} = {text}" for path, text in value.items())
    if isinstance(value, bool):
        return words if value else f"not {words}"
    if isinstance(value, list):
        first = " or ".join(map(str, value[:SHOWN]))
        return f"{words} {first}" + (f" and {len(value) - SHOWN:,} more" if len(value) > SHOWN else "")
    return f"{words} {value}"


def _are_statuses(value: Any) -> bool:
    return isinstance(value, list) and all(one in Status.values for one in value)


def _are_ids(value: Any) -> bool:
    is_list = isinstance(value, list) and len(value) <= MAX_IDS
    return is_list and all(is_whole(one, -MAX_ID - 1, MAX_ID) for one in value)


def _is_moment(value: Any) -> bool:
    if not isinstance(value, datetime):
        return value is None
    try:
        return value.tzinfo is not None and bool(_utc(value))
    except OverflowError:  # the first or the last day that there is, and its zone leads beyond it
        return False


def _utc(value: datetime | None) -> datetime | None:
    """The same moment in UTC. Python knows zones up to 24 hours from it, and PostgreSQL up to 16."""
    return value and value.astimezone(UTC)


def _are_attributes(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) <= MAX_ATTRIBUTES
        and all(
            is_text(path, MAX_PATH, at_least=1) and path.count(".") < MAX_KEYS and is_text(text, MAX_VALUE)
            for path, text in value.items()
        )
    )
