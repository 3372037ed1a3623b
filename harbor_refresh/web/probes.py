"""The views of /metrics, /healthz and /readyz, and the middleware that answers them before anything else: probes
and Prometheus ask the process itself, over plain HTTP, under no host name that ALLOWED_HOSTS knows.

A process is ready if it can take reports, which needs PostgreSQL with our tables and nothing else. If an outage of
Redis made every web process unready, the load balancer would refuse all reports. Nothing is counted in a process,
so each gives the same metrics.

/metrics needs a token with the scope `read`, because backlogs and names of nodes are not for strangers, or a
connection from REFRESH_METRICS_NETWORKS. A request that came through a proxy has the proxy's address, so it always
needs a token: else a proxy inside the networks would open the page to the world.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import ip_address, ip_network
from itertools import accumulate

from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.problems import Problem, answer, unauthorized
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.news.counters import Histogram, Totals, totals
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import what_is_wrong
from harbor_refresh.tasks.news.state import ServiceState, look
from harbor_refresh.web.flights import SECONDS, Flight
from harbor_refresh.web.metrics import COUNTERS, GAUGES, HISTOGRAMS

OF_A_PROXY = ("X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip", "Via")


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
    address = getattr(address, "ipv4_mapped", None) or address  # a socket of IPv6 writes IPv4 like this
    return any(address in ip_network(network) for network in networks)


NEEDED = ("database.reachable", "database.writable", "tables.migrations")
LATE = f"no answer within {SECONDS:g} s"
#: Why each server cannot be used; an empty text if it can. All probes share the connection of the facts of Redis.
databases = Flight(lambda: what_is_wrong(Facts(), *NEEDED), lambda: LATE)
redises = Flight(partial(what_is_wrong, Facts(), "redis.reachable"), lambda: LATE)


#: Redis and the broker are waited for within the look.
looks = Flight(look, lambda: ServiceState(absent={"database": "it does not answer"}))
counts: Flight[Totals | None] = Flight(absence_translated()(totals), lambda: None)


class Scrape(Collector):
    """Collect the metrics for one scrape. Unknown values are left out, because a 0 would be wrong; `server_up`
    says which server is down."""

    def collect(self) -> Iterator[Metric]:
        state = looks.answer()
        for gauge in GAUGES:
            known = gauge.value(state)
            family = GaugeMetricFamily(gauge.name, gauge.meaning, labels=list(gauge.labels))
            for label, value in known.items() if isinstance(known, Mapping) else [("", known)]:
                if value is not None:
                    family.add_metric([label] if gauge.labels else [], value)
            yield family
        with suppress(DatabaseDown):
            if (found := counts.answer()) is not None:
                yield from _counted(found)


def _counted(found: Totals) -> Iterator[Metric]:
    for counter in COUNTERS:
        total = CounterMetricFamily(counter.name, counter.meaning, labels=list(counter.labels))
        for labels, series in counter.series():
            total.add_metric(labels, found.get((counter.metric, series), 0))
        yield total
    for timed in HISTOGRAMS:
        known = Histogram.of(timed.metric, found)
        bounds = [*(f"{bound:g}" for bound in known.bounds), "+Inf"]
        buckets = list(zip(bounds, accumulate(known.buckets), strict=True))
        yield HistogramMetricFamily(timed.name, timed.meaning, buckets=buckets, sum_value=known.sum)


View = Callable[[HttpRequest], HttpResponse]


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200. It asks no server, because a restart of this process would mend none."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if this process can take reports, else 503, and say which server is down.

    Why it is down is told to a probe, which asks the process itself, and not through a proxy: the reason names
    addresses of our network.
    """
    found = {"database": databases.answer(), "redis": redises.answer()}
    is_ready, is_stranger = not found["database"], came_through_a_proxy(request)
    shown = {name: (trouble and ("down" if is_stranger else trouble)) or "ok" for name, trouble in found.items()}
    return JsonResponse({"ready": is_ready, **shown}, status=200 if is_ready else 503)


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer a scrape. Without the database no token can be checked, so that is a 503, which Prometheus
    notices."""
    try:
        with absence_translated():
            if not _is_near(request) and not may[Scope.READ](request):
                raise unauthorized()
    except (Problem, DatabaseDown) as exc:
        return answer(request, exc)
    return HttpResponse(generate_latest(Scrape()), content_type=CONTENT_TYPE_PLAIN_0_0_4)


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
        if request.method == "HEAD":  # of an unknown length, the server would send the end of the body
            response["Content-Length"] = str(len(response.content))
        return response
