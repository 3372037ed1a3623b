"""The filter of executions: what the API's list, the actions on many, the admin and the commands choose by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from django.db.models import F, Func, QuerySet, TextField, Value
from django.utils.dateparse import parse_datetime

from executions.errors import Refused
from executions.models import Execution
from executions.status import MAX_ID, MAX_VENDOR, Status
from executions.text import is_text, is_whole, shown

MAX_TRIGGER = 16
MAX_ATTRIBUTES = 5
MAX_PATH = 200
MAX_VALUE = 1_000
MAX_KEYS = 10


@dataclass(frozen=True)
class Filter:
    """A condition that executions meet or not. An empty field chooses all.

    `attributes`: dotted paths into extra_attrs, with the text of the value there. `repository.name` is the key
    `name` in the object under `repository`; a part that is a number is also the index into an array. Numbers,
    true and false are compared as JSON writes them; null equals no text.
    """

    vendor_type: str = ""
    vendor_id: int | None = None
    statuses: Sequence[str] = ()
    trigger: str = ""
    started_after: datetime | None = None
    started_before: datetime | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, fits, takes in (
            ("vendor_type", is_text(self.vendor_type, MAX_VENDOR), f"at most {MAX_VENDOR} characters"),
            ("trigger", is_text(self.trigger, MAX_TRIGGER), f"at most {MAX_TRIGGER} characters"),
            ("vendor_id", self.vendor_id is None or _is_id(self.vendor_id), "a whole number of at most 64 bits"),
            ("statuses", _are_statuses(self.statuses), f"some of {', '.join(Status.values)}"),
            ("started_after", _is_moment(self.started_after), "a date and time with its zone"),
            ("started_before", _is_moment(self.started_before), "a date and time with its zone"),
            (
                "attributes",
                _are_attributes(self.attributes),
                f"at most {MAX_ATTRIBUTES} dotted paths with a text each",
            ),
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
            "vendor_id": self.vendor_id,
            "status__in": list(self.statuses) or None,
            "trigger": self.trigger or None,
            "start_time__gte": _utc(self.started_after),
            "start_time__lt": _utc(self.started_before),
        }
        executions = executions.filter(**{name: value for name, value in lookups.items() if value is not None})
        for path, text in self.attributes.items():
            executions = executions.alias(attribute=_attribute(path)).filter(attribute=text)
        return executions

    def as_json(self) -> dict[str, Any]:
        """The fields that are set, as JSON can hold them."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or value == "" or (one.name in ("statuses", "attributes") and not value):
                continue
            if isinstance(value, datetime):
                value = value.isoformat()
            found[one.name] = list(value) if one.name == "statuses" else value
        return found

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Filter":
        """Read what `as_json` wrote, or what a caller wrote by hand. Raises Refused for what it cannot use."""
        known = {one.name for one in fields(cls)}
        if unknown := sorted(set(given) - known):
            raise Refused(f"unknown field {shown(unknown[0])}; takes {', '.join(sorted(known))}")
        values = dict(given)
        for name in ("started_after", "started_before"):
            if isinstance(values.get(name), str):
                values[name] = _moment(values[name])
        if isinstance(values.get("statuses"), list):
            values["statuses"] = tuple(values["statuses"])
        return cls(**values)


def _attribute(path: str) -> Func:
    """The text at a dotted path. It is SQL's own function, because Django's lookups would read a key such as
    `contains` as an operator."""
    keys = (Value(key) for key in path.split("."))
    return Func(F("extra_attrs"), *keys, function="jsonb_extract_path_text", output_field=TextField())


def _moment(text: str) -> datetime | str:
    try:
        return parse_datetime(text) or text
    except ValueError:
        return text


def _are_statuses(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(one in Status.values for one in value)


def _is_id(value: Any) -> bool:
    return is_whole(value, -MAX_ID - 1, MAX_ID)


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
