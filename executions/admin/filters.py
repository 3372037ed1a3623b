"""The filters of the list of executions. Each takes bounded time: an index answers it, or it compares the newest.

Django applies them in the order of `list_filter`. Filters with an index come first. Filters without an index then
compare the newest of the rows that are left, and pass a choice of ids on, so that no later filter and no order can
make them slow.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.admin.formatters import STATUS_PARAMETER
from harbor_refresh.executions.admin.search import add_bound, among, vendors
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.vendor_keys import lookups
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.queries.lookups import COMPARED, MOST, find_by_status
from harbor_refresh.executions.status import Status

STARTED_PARAMETER = "start_time"
TRIGGERS = ("MANUAL", "SCHEDULE", "EVENT")
Rows = QuerySet[Execution]


class VendorFilter(admin.SimpleListFilter):
    title = "vendor"
    parameter_name = "vendor"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(vendor, vendor) for vendor in vendors()]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(vendor_type=self.value()) if self.value() else queryset


class FieldsFilter(admin.SimpleListFilter):
    """A filter with fields, which Django has not: its form sends them with what narrows the list besides."""

    template = "executions/admin/fields_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def has_output(self) -> bool:
        return True

    def fields(self) -> list[dict[str, str]]:
        """The fields: `name`, `label`, `type` and `value`."""
        name = str(self.parameter_name)
        return [{"name": name, "label": str(self.title), "type": "text", "value": self.value() or ""}]

    def choices(self, changelist: Any) -> Iterator[Any]:
        own = {one["name"] for one in self.fields()}
        params = changelist.filter_params.items()
        others = [(name, one) for name, values in params if name not in own for one in values]
        yield {"fields": self.fields(), "others": others}


class VendorIdFilter(FieldsFilter):
    """The index begins with the vendor, so without a vendor every vendor is looked up. Text has an index of its
    own as well."""

    title = "vendor id"
    parameter_name = "vendor_id"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        text = (self.value() or "").strip()
        if not text:
            return queryset
        try:
            of_object = lookups(text)
        except Refused as exc:
            add_bound(request, f"{exc}.")
            return queryset.none()
        return queryset.filter(vendor_type__in=vendors(), **of_object)


def started_between(given: Mapping[str, str]) -> dict[str, datetime]:
    """Read two moments in UTC from the parameters of the list: `gte` and `lt`. Without a time, the first day
    begins at 0:00 and the last day belongs to it. Raises Refused."""
    found: dict[str, datetime] = {}
    for side, bound, otherwise in (("from", "gte", "00:00:00"), ("to", "lt", "23:59:59.999999")):
        day, time = (given.get(f"{STARTED_PARAMETER}_{side}_{part}", "").strip() for part in (0, 1))
        if not day:
            continue
        try:
            at = datetime.fromisoformat(f"{day}T{time or otherwise}").replace(tzinfo=UTC)
            found[bound] = at if side == "from" else at + timedelta(microseconds=1)
        except (ValueError, OverflowError) as exc:
            raise Refused("a date is written 2026-01-31, and a time 23:59:59") from exc
    return found


class StartedFilter(FieldsFilter):
    title = "start (UTC)"
    parameter_name = f"{STARTED_PARAMETER}_from_0"
    names = tuple(f"{STARTED_PARAMETER}_{side}_{part}" for side in ("from", "to") for part in (0, 1))

    def __init__(self, request: HttpRequest, params: dict[str, Any], *args: Any) -> None:
        super().__init__(request, params, *args)
        for name in self.names:
            if values := params.pop(name, None):
                self.used_parameters[name] = values[-1]

    def expected_parameters(self) -> list[str | None]:
        return list(self.names)

    def fields(self) -> list[dict[str, str]]:
        kinds = ("date", "time")
        return [
            {
                "name": name,
                "label": f"{name.split('_')[-2]}, {kinds[int(name[-1])]}",
                "type": kinds[int(name[-1])],
                "value": self.used_parameters.get(name, ""),
            }
            for name in self.names
        ]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        try:
            between = started_between(self.used_parameters)
        except Refused as exc:
            add_bound(request, f"{str(exc).capitalize()}.")
            return queryset
        return queryset.filter(**{f"start_time__{bound}": at for bound, at in between.items()})


class YesFilter(admin.SimpleListFilter):
    """A filter with one choice."""

    choice = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", self.choice)]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return self.chosen(request, queryset) if self.value() == "yes" else queryset

    def chosen(self, request: HttpRequest, queryset: Rows) -> Rows:
        raise NotImplementedError


class QuarantinedFilter(YesFilter):
    title = "quarantine"
    parameter_name = "quarantined"
    choice = "Quarantined"

    def chosen(self, request: HttpRequest, queryset: Rows) -> Rows:
        held = Quarantine.objects.order_by("-pk").values_list("pk", flat=True)
        return queryset.filter(among(list(held[:MOST])))


class StatusChoice(admin.SimpleListFilter):
    """The statuses of a list; `having` finds the rows of one, in bounded time."""

    title = "status"
    parameter_name = STATUS_PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(Status.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        status = self.value()
        if not status:
            return queryset
        if status not in Status.values:
            raise IncorrectLookupParameters(f"no status is called {status!r}")
        return self.having(request, queryset, status)

    def having(self, request: HttpRequest, queryset: QuerySet[Any], status: str) -> QuerySet[Any]:
        raise NotImplementedError


class StatusFilter(StatusChoice):
    def having(self, request: HttpRequest, queryset: Rows, status: str) -> Rows:
        found = find_by_status(status)
        ids = set(found.ids)
        if is_narrowed(queryset):
            ids |= set(newest_with(queryset, "status", status))
        if not found.is_complete:
            add_bound(request, f"{status}: of the newest {COMPARED:,} executions, {MOST:,} at most.")
        return queryset.filter(among(sorted(ids)))


class TriggerFilter(admin.SimpleListFilter):
    title = "trigger"
    parameter_name = "trigger"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(one, one.capitalize()) for one in TRIGGERS]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        if not (trigger := self.value()):
            return queryset
        ids = newest_with(queryset, "trigger", trigger)
        add_bound(request, f"{trigger}: of the newest {COMPARED:,} executions, {MOST:,} at most.")
        return queryset.filter(among(ids))


def is_narrowed(queryset: Rows) -> bool:
    return bool(queryset.query.where)


def newest_with(queryset: QuerySet[Any], column: str, value: str) -> list[int]:
    """Return the ids of the newest MOST rows with this value, among the newest COMPARED of these. One statement
    reads each of them once."""
    rows = queryset.order_by("-pk").values("pk", column)[:COMPARED]
    try:
        statement, values = rows.query.sql_with_params()
    except EmptyResultSet:
        return []
    name = connection.ops.quote_name(column)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT newest.* FROM ({statement}) newest WHERE newest.{name} = %s LIMIT %s",  # noqa: S608
            [*values, value, MOST],
        )
        return [row[0] for row in cursor.fetchall()]
