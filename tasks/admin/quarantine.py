"""The screen of quarantine: its executions, the reasons, and the action that releases them."""

from datetime import timedelta

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.admin.base import ReadOnlyAdmin, may
from harbor_refresh.executions.admin.formatters import column, execution_link, moment, status_label
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.admin.execution_actions import release_now


@page(Quarantine)
class QuarantineAdmin(ReadOnlyAdmin):
    list_display = ("execution_number", "vendor", "status", "attempts", "reason", "since", "until")
    list_display_links = None
    list_select_related = ("execution",)
    large = ("execution__extra_attrs",)
    fields = (("execution_number", "vendor"), "status", "attempts", "reason", ("since", "until"))
    ordering = ("-at", "pk")
    search_fields = ("pk", "reason__icontains")
    search_help_text = "Execution id, or words of the reason"
    list_head = "tasks/admin/quarantine_head.html"
    actions = ("release",)

    has_release_permission = may("harbor_executions.change_quarantine")

    @admin.action(description="Release", permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[Quarantine]) -> None:
        release_now(request, list(queryset.values_list("pk", flat=True)))

    execution_number = column("execution_id", "Execution", execution_link)
    vendor = column(lambda row: row.execution.vendor_type, "Vendor")
    status = column("execution.status", "Last known status", status_label)
    since = column("at", "Since")
    until = column("at", "Tried again after", lambda at: moment(at + timedelta(seconds=pacing.QUARANTINE_SECONDS)))
