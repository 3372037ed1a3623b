"""The URLs: the API, Harbor's status hook, the admin, and `/`, which leads to the dashboard."""

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, re_path
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from harbor_refresh.admin.dashboard import chart_data, live
from harbor_refresh.admin.latest import SPANS
from harbor_refresh.executions.api.hook import status_hook
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.web.api import unknown_path, urls


def to_flower(request: HttpRequest) -> HttpResponse:
    """Lead to Flower, which asks for the session of the admin (harbor_refresh/flower/login.py)."""
    if not (address := refresh_settings().flower_url):
        raise Http404("REFRESH_FLOWER_URL is not set")
    return HttpResponseRedirect(address)


urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/flower/", admin.site.admin_view(to_flower), name="flower"),
    path("admin/live", live, name="dashboard-live"),
    re_path(f"^admin/live/charts/(?P<span>{'|'.join(SPANS)})$", chart_data, name="dashboard-charts"),
    path("admin/", admin.site.urls),
    path("service/notifications/tasks", status_hook),
    path("service/notifications/tasks/<str:task_id>", status_hook),
    path("api/v1/", csrf_exempt(unknown_path)),
    path("api/v1/", urls),
    path("api/v1/<path:path>", csrf_exempt(unknown_path)),
]
