"""The filters of the lists, and the `Filter` that the address of the list of executions means. The list and an
action on all that match share it, so the action chooses what the list does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.text import smart_split

from harbor_refresh.executions.admin.formatters import STATUS_PARAMETER
from harbor_refresh.executions.database import distinct
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Execution, Task, VendorKey
from harbor_refresh.executions.queries.filters import MAX_IDS, Filter
from harbor_refresh.executions.status import MAX_ID, Status
from harbor_refresh.executions.text import storable

MAX_VENDORS = 200
STARTED_PARAMETER = "start_time"
#: The fields of the filter by start: the name, the label and the type of each.
STARTED = [
    (f"{STARTED_PARAMETER}_{side}_{part}", f"{side}, {kind}", kind)
    for side in ("from", "to")
    for part, kind in enumerate(("date", "time"))
]
#: Parameters that choose no rows: the page, the order, and what Django adds. Others of Django begin with `_`.
OF_THE_VIEW = ("p", "o", "all", "e")


def add_bound(request: HttpRequest, sentence: str) -> None:
    """Show below the list what it has not compared, once."""
    if sentence not in (said := bounds(request)):
        said.append(sentence)


def bounds(request: HttpRequest) -> list[str]:
    said: list[str] = request.__dict__.setdefault("bounds_of_the_list", [])
    return said


def parse_id(word: str) -> int | None:
    """The word as an id, or None if it cannot be an id."""
    return int(word) if word.isdecimal() and len(word) <= 19 and int(word) <= MAX_ID else None


def vendors() -> list[str]:
    return list(islice(distinct(Execution.objects.all(), "vendor_type"), MAX_VENDORS))


def filter_of(query: QueryDict) -> Filter:
    """Return what the parameters of the list choose, on all its pages. Raises Refused for what it cannot read."""
    given = {
        name: values[-1].strip()
        for name, values in query.lists()
        if name not in OF_THE_VIEW and not name.startswith("_")
    }
    fields: dict[str, Any] = _started({name: given.pop(name, "") for name, _, _ in STARTED})
    for name, value in given.items():
        if not value:
            continue
        if name not in {"q", *PARAMETERS} or len(query.getlist(name)) > 1:
            raise Refused(f"the list is narrowed by `{name[:40]}`, which is no filter or is there twice")
        if not storable(value):
            raise Refused(f"`{name}` holds what no row can have")
        for field, one in _searched(value) if name == "q" else [PARAMETERS[name](value)]:
            if field in fields:
                raise Refused(f"the list is narrowed by {field} twice; leave one out")
            fields[field] = one
    return Filter(**fields)


def _searched(text: str) -> Iterator[tuple[str, Any]]:
    """Read each word: `path=value` of the attributes, the id of an execution or of a job, a vendor id that is
    text, or a part of the name of a vendor that no other vendor has."""
    for word in smart_split(text):
        path, is_attribute, value = word.partition("=")
        if is_attribute and path:
            yield "attributes", {path: _unquoted(value)}
        elif ids := _executions_named(word):
            yield "ids", ids
        else:
            yield "vendor_type", _vendor_named(word)


def _executions_named(word: str) -> list[int]:
    of_jobs = Task.objects.filter(job_id=word).values_list("execution_id", flat=True)[: MAX_IDS + 1]
    of_keys = VendorKey.objects.filter(key=word).order_by("-pk").values_list("pk", flat=True)[: MAX_IDS + 1]
    pk = parse_id(word)
    found = {*of_jobs.union(of_keys, all=True), *([] if pk is None else [pk])}
    if len(found) > MAX_IDS:
        raise Refused(f"very many executions are of {word}; use the filter by vendor id")
    return sorted(found)


def _vendor_named(word: str) -> str:
    if Execution.objects.filter(vendor_type=word).exists():  # it may not be among the first MAX_VENDORS
        return word
    known, part = vendors(), word.lower()
    found = [one for one in known if one.lower() == part] or [one for one in known if part in one.lower()]
    if len(found) != 1:
        raise Refused("the search finds several vendors; use the filter" if found else "the search finds nothing")
    return found[0]


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _started(given: Mapping[str, str]) -> dict[str, datetime]:
    """Read two moments in UTC. Without a time, the first day begins at 0:00 and the last day belongs to it."""
    found: dict[str, datetime] = {}
    for side, field, otherwise in (
        ("from", "started_after", "00:00:00"),
        ("to", "started_before", "23:59:59.999999"),
    ):
        day, time = (given[f"{STARTED_PARAMETER}_{side}_{part}"] for part in (0, 1))
        if not day:
            continue
        try:
            at = datetime.fromisoformat(f"{day}T{time or otherwise}").replace(tzinfo=UTC)
            found[field] = at if side == "from" else at + timedelta(microseconds=1)
        except (ValueError, OverflowError) as exc:
            raise Refused("a date is written 2026-01-31, and a time 23:59:59") from exc
    return found


def _yes(value: str) -> bool | str:
    return True if value == "yes" else value  # the Filter refuses other values


#: The field of the Filter that each parameter means, and its value.
PARAMETERS: Mapping[str, Callable[[str], tuple[str, Any]]] = {
    "vendor": lambda value: ("vendor_type", value),
    "vendor_id": lambda value: ("vendor_id", value),
    STATUS_PARAMETER: lambda value: ("statuses", (value,)),
    "trigger": lambda value: ("trigger", value),
    "quarantined": lambda value: ("quarantined", _yes(value)),
    "has_jobs": lambda value: ("has_jobs", _yes(value)),
}


class ListFilter(admin.SimpleListFilter):
    """An entry beside the list. `filter_of` reads the parameters of executions, so it `narrows` nothing there."""

    options: tuple[tuple[str, str], ...] = ()
    narrows = False

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(self.options)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value() if self.narrows else None
        return queryset.filter(**{str(self.parameter_name): value}) if value else queryset


class VendorFilter(ListFilter):
    title = "vendor"
    parameter_name = "vendor"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(vendor, vendor) for vendor in vendors()]


class FieldsFilter(ListFilter):
    """A filter with fields, which Django has not: its form sends them with what narrows the list besides."""

    template = "executions/admin/fields_filter.html"
    #: The name, the label and the type of each field.
    inputs: Sequence[tuple[str, str, str]] = ()

    def __init__(self, request: HttpRequest, params: dict[str, Any], *args: Any) -> None:
        super().__init__(request, params, *args)
        found = {name: params.pop(name)[-1] for name, _, _ in self.inputs if name in params}
        self.used_parameters |= found

    def expected_parameters(self) -> list[str | None]:
        return [name for name, _, _ in self.inputs]

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        own, params = self.expected_parameters(), changelist.filter_params.items()
        others = [(name, one) for name, values in params if name not in own for one in values]
        yield {"fields": [(*one, self.used_parameters.get(one[0], "")) for one in self.inputs], "others": others}


def filter_by(title: str, parameter: str, *options: tuple[str, str], narrows: bool = False) -> type[ListFilter]:
    own = {"title": title, "parameter_name": parameter, "options": options, "narrows": narrows}
    return type("OneOf", (ListFilter,), own)


def fields_filter(title: str, inputs: Sequence[tuple[str, str, str]]) -> type[ListFilter]:
    return type("Fields", (FieldsFilter,), {"title": title, "parameter_name": inputs[0][0], "inputs": inputs})


class StatusFilter(ListFilter):
    """The statuses of a list. Of tasks and of jobs, `having` finds the rows of one, in bounded time."""

    title = "status"
    parameter_name = STATUS_PARAMETER
    options = tuple(Status.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        status = self.value()
        if not status:
            return queryset
        if status not in Status.values:
            raise IncorrectLookupParameters(f"no status is called {status!r}")
        return self.having(request, queryset, status)

    def having(self, request: HttpRequest, queryset: QuerySet[Any], status: str) -> QuerySet[Any]:
        return queryset


#: Those of the list of executions.
FILTERS = (
    VendorFilter,
    fields_filter("vendor id", [("vendor_id", "vendor id", "text")]),
    fields_filter("start (UTC)", STARTED),
    filter_by("quarantine", "quarantined", ("yes", "Quarantined")),
    StatusFilter,
    filter_by("trigger", "trigger", *((one, one.capitalize()) for one in ("MANUAL", "SCHEDULE", "EVENT"))),
    filter_by("jobs", "has_jobs", ("yes", "Has jobs")),
)
