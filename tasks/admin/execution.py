"""The screen of executions with their jobs and the actions: refresh now, stop, try failed jobs again."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from executions.admin.confirmation import confirmed_action, redirect_to_execution
from executions.admin.execution import ExecutionAdmin
from executions.models import Execution
from tasks.admin.execution_jobs import ExecutionJobsMixin
from tasks.admin.refresh_action import MAX_REFRESHED, refresh_now

admin.site.unregister(Execution)


@admin.register(Execution)
class ExecutionWithActionsAdmin(ExecutionJobsMixin, ExecutionAdmin):
    actions = ("refresh_selected", "stop_selected", "retry_selected")
    actions_detail = ("refresh_this", "stop_this", "retry_this")

    def has_refresh_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.has_perm("harbor_executions.change_execution")

    @admin.action(description="Refresh now", permissions=["refresh"])
    def refresh_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> None:
        refresh_now(request, list(queryset.values_list("pk", "vendor_type")[: MAX_REFRESHED + 1]))

    @confirmed_action(
        "Refresh now",
        "Brings the status to what the tasks say, at once, without the queue.",
        icon="sync",
        url_path="refresh",
        submit="Refresh",
    )
    def refresh_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        chosen = Execution.objects.filter(pk=object_id)
        refresh_now(request, list(chosen.values_list("pk", "vendor_type")))
        return redirect_to_execution(object_id)
