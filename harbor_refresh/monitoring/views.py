"""The views of /metrics, /healthz and /readyz, and the middleware that answers them before anything else.

Probes and Prometheus ask an address of the process itself, over plain HTTP: no host name that ALLOWED_HOSTS
knows, no proxy that ends TLS. So these three are answered before the check of the host and the redirect to
HTTPS. They read no host name, no session and no cookie.
"""

from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from harbor_refresh.executions.api.problems import RETRY_AFTER, Problem, answer
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.monitoring.access import came_through_a_proxy, refuse_strangers
from harbor_refresh.monitoring.collector import Collector
from harbor_refresh.monitoring.readiness import ready

View = Callable[[HttpRequest], HttpResponse]


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200. It asks no server, because a restart of this process would mend none."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if this process can take reports, else 503, and say which server is away.

    Why it is away is told to a probe, which asks the process itself, and not through a proxy: the reason names
    addresses of our network.
    """
    found = ready()
    is_stranger = came_through_a_proxy(request)
    told = {
        name: ("away" if is_stranger else trouble) if trouble else "ok"
        for name, trouble in (("database", found.database), ("redis", found.redis))
    }
    return JsonResponse({"ready": found.is_ready, **told}, status=200 if found.is_ready else 503)


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer a scrape. Without the database no token can be checked, so that is a 503, which Prometheus
    notices."""
    try:
        with absence_translated():
            refuse_strangers(request)
    except Problem as problem:
        return answer(request, problem)
    except DatabaseAway as exc:
        later = {"Retry-After": str(RETRY_AFTER)}
        return answer(request, Problem(503, "The database is away", str(exc), later))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


VIEWS: Mapping[str, View] = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}


class Probes:
    """The middleware that answers the paths of VIEWS, and passes every other request on."""

    def __init__(self, get_response: View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        view = VIEWS.get(request.path)
        if view is None:
            return self._get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        response = view(request)
        response["Cache-Control"] = "no-store"
        return response
