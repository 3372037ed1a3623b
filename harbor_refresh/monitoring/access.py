"""Who may read /metrics: a token with the scope `read`, or an address of REFRESH_METRICS_NETWORKS.

A token is the rule, because backlogs and names of nodes are not for strangers; Prometheus sends one with
`authorization: credentials_file`. The networks are for a Prometheus beside the service. Only the
address of the connection counts. A request that came through a proxy has the proxy's address. So a request with a
header of a proxy always needs a token: else a proxy inside the networks would open the page to the world.
"""

from ipaddress import ip_address, ip_network

from django.http import HttpRequest

from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.problems import unauthorized
from harbor_refresh.executions.conf import intake_settings

OF_A_PROXY = ("X-Forwarded-For", "Forwarded", "X-Real-Ip")


def refuse_strangers(request: HttpRequest) -> None:
    """Raise Problem if the request may not read the metrics."""
    if not _is_near(request) and not may(Scope.READ)(request):
        raise unauthorized()


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
