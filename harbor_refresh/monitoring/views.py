"""The views of /metrics, /healthz and /readyz, and the middleware that answers them before anything else.

Probes and Prometheus ask an address of the process itself, over plain HTTP: no host name that ALLOWED_HOSTS
knows, no proxy that ends TLS. So these three are answered before the check of the host and the redirect to
HTTPS. They read no host name, no session and no cookie.

Who may read /metrics: a token with the scope `read`, or an address of REFRESH_METRICS_NETWORKS.

A token is the rule, because backlogs and names of nodes are not for strangers; Prometheus sends one with
`authorization: credentials_file`. The networks are for a Prometheus beside the service. Only the
address of the connection counts. A request that came through a proxy has the proxy's address. So a request with a
header of a proxy always needs a token: else a proxy inside the networks would open the page to the world.
"""

from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network

from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.problems import RETRY_AFTER, Problem, answer, unauthorized
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.monitoring.collector import Collector
from harbor_refresh.monitoring.readiness import troubles

OF_A_PROXY = ("X-Forwarded-For", "Forwarded", "X-Real-Ip")


def came_through_a_proxy(request: HttpRequest) -> bool:
    return any(name in request.headers for name in OF_A_PROXY)


def _is_near(request: HttpRequest) -> bool:
    networks = intake_settings().metrics_networks
    if not networks or came_through_a_proxy(request):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # a socket file has no address
        return False
    return any(address in ip_network(network) for network in networks)


View = Callable[[HttpRequest], HttpResponse]


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200. It asks no server, because a restart of this process would mend none."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if this process can take reports, else 503, and say which server is away.

    Why it is away is told to a probe, which asks the process itself, and not through a proxy: the reason names
    addresses of our network.
    """
    found = troubles()
    is_ready, is_stranger = not found["database"], came_through_a_proxy(request)
    told = {name: (trouble and ("away" if is_stranger else trouble)) or "ok" for name, trouble in found.items()}
    return JsonResponse({"ready": is_ready, **told}, status=200 if is_ready else 503)


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer a scrape. Without the database no token can be checked, so that is a 503, which Prometheus
    notices."""
    try:
        with absence_translated():
            if not _is_near(request) and not may(Scope.READ)(request):
                raise unauthorized()
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
