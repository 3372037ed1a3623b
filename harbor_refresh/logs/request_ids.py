"""Give each request an id, so that its lines and its answer can be found together."""

import re
import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from harbor_refresh.logs.context import bound

HEADER = "X-Request-ID"
#: An id of a proxy. Anything else is replaced, because it goes into the log and back in a header.
USABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Take the id that a proxy sent, or make one; bind it; send it with the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        name = given if USABLE.fullmatch(given) else secrets.token_hex(8)
        with bound(request=name):
            response = self._get_response(request)
        response[HEADER] = name
        return response
