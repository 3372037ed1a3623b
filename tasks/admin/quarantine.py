"""The screen of quarantine: its executions, the reasons, and the action that releases them."""

from datetime import timedelta

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from harbor_refresh.executions.access.audit import Kind, Word
from harbor_refresh.executions.admin.audit import noted
from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.formatters import execution_link, moment, status_label
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.unfold_api import display
from harbor_refresh.executions.lifecycle import quarantines
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks import pacing


@page(Quarantine)
class QuarantineAdmin(ReadOnlyAdmin):
    list_display = (
        "execution_number",
        "vendor",
        "status",
        "attempts",
        "reason",
        "since",
        "until",
    )
    list_display_links = None
    list_select_related = ("execution",)
    large = ("execution__extra_attrs",)
    fields = (("execution_number", "vendor"), "status", "attempts", "reason", ("since", "until"))
    readonly_fields = ("execution_number", "vendor", "status", "since", "until")
    ordering = ("-at", "pk")
    search_fields = ("reason",)
    search_help_text = "Execution id, or words of the reason"
    list_before_template = "tasks/admin/quarantine_head.html"
    actions = ("release",)

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("harbor_executions.change_quarantine")

    @admin.action(description="Release", permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[Quarantine]) -> None:
        released: list[int] = []
        for row in queryset.select_related("execution"):
            with noted(request, Word.RELEASE, Kind.QUARANTINE, row.execution) as entry:
                released += (now := quarantines.release([row.pk]))
                entry.skip = not now
        free = plural(len(released), "execution is", "executions are")
        self.message_user(request, f"{free} free again and will be refreshed soon.", messages.SUCCESS)

    def matching(self, rows: QuerySet[Quarantine], text: str) -> QuerySet[Quarantine]:
        for word in text.split():
            found = parse_id(word)
            same_id = Q() if found is None else Q(pk=found)
            rows = rows.filter(Q(reason__icontains=word) | same_id)
        return rows

    @display(description="Execution")
    def execution_number(self, row: Quarantine) -> SafeString:
        return execution_link(row.execution_id)

    @display(description="Vendor")
    def vendor(self, row: Quarantine) -> str:
        return row.execution.vendor_type

    @display(description="Last known status")
    def status(self, row: Quarantine) -> SafeString:
        return status_label(row.execution.status)

    @display(description="Since")
    def since(self, row: Quarantine) -> str | SafeString:
        return moment(row.at)

    @display(description="Tried again after")
    def until(self, row: Quarantine) -> str | SafeString:
        return moment(row.at + timedelta(seconds=pacing.QUARANTINE_SECONDS))
