"""The screen of the log of actions: each act with its user, address, time, target and outcome."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.access.audit import Kind, Word
from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.filters import ListFilter
from harbor_refresh.executions.admin.formatters import NOTHING, column, label
from harbor_refresh.executions.admin.site_pages import admin_url, page
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.executions.models.operations import Outcome

COLOURS: dict[str, str] = {Outcome.DONE: "success", Outcome.UNCHANGED: "default", Outcome.FAILED: "danger"}
#: The page of a target, if its kind has pages.
PAGES: dict[str, str] = {
    Kind.EXECUTION: "harbor_executions_execution_change",
    Kind.QUARANTINE: "harbor_executions_execution_change",
    Kind.TASK: "harbor_executions_task_change",
    Kind.JOB: "harbor_executions_task_change",
    Kind.EXECUTIONS: "harbor_executions_execution_change",
    Kind.SUBSCRIPTION: "harbor_executions_subscription_change",
    Kind.DELIVERY: "harbor_executions_delivery_change",
    Kind.SCHEDULE: "django_celery_beat_periodictask_change",
    Kind.INTERVAL: "django_celery_beat_intervalschedule_change",
    Kind.CRONTAB: "django_celery_beat_crontabschedule_change",
    Kind.USER: "auth_user_change",
    Kind.GROUP: "auth_group_change",
}


class WordFilter(ListFilter):
    title = "what was done"
    parameter_name = "verb"
    options = tuple((word.value, word.capitalize()) for word in sorted(Word))

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class KindFilter(WordFilter):
    title = "to what"
    parameter_name = "kind"
    options = tuple((kind.value, kind.capitalize()) for kind in sorted(Kind))


@page(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("when", "by", "origin", "address", "verb", "what", "how_many", "shown_outcome", "detail")
    list_display_links = None
    list_filter = (WordFilter, KindFilter, "origin", "at")
    fields = ("when", ("by", "origin", "address"), ("verb", "what"), ("how_many", "shown_outcome"), "detail")
    search_fields = ("by",)
    search_help_text = "The full name of the user or token, or the id of the target"

    def matching(self, rows: QuerySet[AuditEntry], text: str) -> QuerySet[AuditEntry]:
        """By name or by target, which have indexes. A name may have spaces in it."""
        if not (text := text.strip()):
            return rows
        return rows.filter(by=text) | rows.filter(kind__in=[kind.value for kind in Kind], target=text)

    when = column("at", "When")

    @admin.display(description="To what")
    def what(self, entry: AuditEntry) -> SafeString | str:
        by = ", by execution" if entry.kind == Kind.EXECUTIONS and entry.target else ""
        named = f"{entry.kind}{by} {entry.target}".rstrip()
        page = PAGES.get(entry.kind)
        if not page or not entry.target.isdecimal():
            return named
        try:
            url = admin_url(page, entry.target)
        except NoReverseMatch:  # a project without that screen
            return named
        return format_html('<a href="{}" class="text-link">{}</a>', url, named)

    @admin.display(description="Rows")
    def how_many(self, entry: AuditEntry) -> str:
        return NOTHING if entry.count is None else f"{entry.count:,}"

    @admin.display(description="Outcome")
    def shown_outcome(self, entry: AuditEntry) -> SafeString:
        return label(entry.outcome.capitalize(), COLOURS[entry.outcome])
