"""The filters of the list of executions. Each takes bounded time: an index answers it, or it compares the newest.

Django applies them in the order of `list_filter`. Filters with an index come first. Filters without an index then
compare the newest of the rows that are left, and pass a choice of ids on, so that no later filter and no order can
make them slow.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.admin.bounds import add_bound
from harbor_refresh.executions.admin.page_parts import STATUS_PARAMETER
from harbor_refresh.executions.admin.search import among, vendors
from harbor_refresh.executions.admin.unfold_api import RangeDateTimeFilter, TextFilter
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


class VendorIdFilter(TextFilter):
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


class StartedFilter(RangeDateTimeFilter):
    """Between two moments in UTC. Without a time, the first day begins at 0:00 and the last day belongs to it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.title = "start (UTC)"

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Fill in the time if only a date was given; without it, the form would call the date wrong."""
        for side, time in (("from", "00:00:00"), ("to", "23:59:59")):
            if self._text(f"{STARTED_PARAMETER}_{side}_0") and not self._text(f"{STARTED_PARAMETER}_{side}_1"):
                self.used_parameters[f"{STARTED_PARAMETER}_{side}_1"] = time
        return super().choices(changelist)

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        begin, end = self._moment(request, "from", "00:00:00"), self._moment(request, "to", "23:59:59.999999")
        if begin is not None:
            queryset = queryset.filter(start_time__gte=begin)
        return queryset if end is None else queryset.filter(start_time__lte=end)

    def _moment(self, request: HttpRequest, side: str, default_time: str) -> datetime | None:
        day = self._text(f"{STARTED_PARAMETER}_{side}_0")
        if not day:
            return None
        try:
            at = datetime.fromisoformat(f"{day}T{self._text(f'{STARTED_PARAMETER}_{side}_1') or default_time}")
            return at.replace(tzinfo=UTC)
        except ValueError:
            add_bound(request, "A date is written 2026-01-31, and a time 23:59:59.")
            return None

    def _text(self, name: str) -> str:
        value = self.used_parameters.get(name) or ""
        return str(value[-1] if isinstance(value, list) else value).strip()


class QuarantinedFilter(admin.SimpleListFilter):
    title = "quarantine"
    parameter_name = "quarantined"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Quarantined")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        if self.value() != "yes":
            return queryset
        held = Quarantine.objects.order_by("-pk").values_list("pk", flat=True)
        return queryset.filter(among(list(held[:MOST])))


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = STATUS_PARAMETER

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(Status.choices)

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        status = self.value()
        if not status:
            return queryset
        if status not in Status.values:
            raise IncorrectLookupParameters(f"no status is called {status!r}")
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
