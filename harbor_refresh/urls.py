"""The URLs: the API, Harbor's status hook, the admin, and `/`, which leads to the admin's list of executions."""

from django.contrib import admin
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from executions.hook.view import status_hook
from harbor_refresh.api import unknown_path, urls

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:harbor_executions_execution_changelist")),
    path("admin/", admin.site.urls),
    path("service/notifications/tasks", status_hook),
    path("service/notifications/tasks/<str:task_id>", status_hook),
    path("api/v1/", urls()),
    path("api/v1/<path:path>", csrf_exempt(unknown_path)),
]
