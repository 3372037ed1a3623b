"""The URLs: the API, the admin, and `/`, which leads to the admin's list of executions."""

from django.contrib import admin
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from harbor_refresh.api import unknown_path, urls

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:harbor_executions_execution_changelist")),
    path("admin/", admin.site.urls),
    path("api/v1/", urls()),
    path("api/v1/<path:path>", csrf_exempt(unknown_path)),
]
