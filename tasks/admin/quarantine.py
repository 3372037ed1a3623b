"""The screen of quarantine: its executions, the reasons, and the action that releases them."""

from datetime import timedelta

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.formatters import column, execution_link, moment, status_label
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.admin.execution_actions import release_now


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
    list_head = "tasks/admin/quarantine_head.html"
    actions = ("release",)

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("harbor_executions.change_quarantine")

    @admin.action(description="Release", permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[Quarantine]) -> None:
        release_now(request, list(queryset.values_list("pk", flat=True)))

    def matching(self, rows: QuerySet[Quarantine], text: str) -> QuerySet[Quarantine]:
        for word in text.split():
            found = parse_id(word)
            same_id = Q() if found is None else Q(pk=found)
            rows = rows.filter(Q(reason__icontains=word) | same_id)
        return rows

    execution_number = column("execution_id", "Execution", execution_link)
    vendor = column(lambda row: row.execution.vendor_type, "Vendor")
    status = column("execution.status", "Last known status", status_label)
    since = column("at", "Since")
    until = column("at", "Tried again after", lambda at: moment(at + timedelta(seconds=pacing.QUARANTINE_SECONDS)))
