"""The URLs: the admin, and `/`, which leads to the admin's list of executions."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:harbor_executions_execution_changelist")),
    path("admin/", admin.site.urls),
]
