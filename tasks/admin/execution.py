"""The screen of executions with their jobs and the actions, in the list and on a page."""

from typing import Any

from django.http import HttpRequest, HttpResponse

from harbor_refresh.executions.admin.confirmation import confirmed_action, redirect_to_execution
from harbor_refresh.executions.admin.execution import ExecutionAdmin
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.admin.bulk_actions import BulkActionsMixin
from harbor_refresh.tasks.admin.execution_jobs import ExecutionJobsMixin
from harbor_refresh.tasks.admin.job_actions import release_now
from harbor_refresh.tasks.admin.refresh_action import refresh_now


@page(Execution)
class ExecutionWithActionsAdmin(BulkActionsMixin, ExecutionJobsMixin, ExecutionAdmin):
    actions_detail = ("refresh_this", "release_this", "stop_this", "retry_this", "resume_this", "delete_this")

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

    @confirmed_action(
        "Release from quarantine",
        "Its refresh failed too often, so workers leave it alone. A release puts it on the queue for another "
        "try, as a report does.",
        icon="lock_open",
        url_path="release",
        submit="Release",
        permission="release",
    )
    def release_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        release_now(request, int(object_id))
        return redirect_to_execution(object_id)

    def has_release_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.has_perm("harbor_executions.change_quarantine")
