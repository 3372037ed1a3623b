"""The id of a request, which is added to every line that its thread writes while it handles the request."""

import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

#: Empty outside of a request.
request_id: ContextVar[str] = ContextVar("harbor_refresh_request_id", default="")
HEADER = "X-Request-ID"
#: An id of a proxy. Anything else is replaced, because it goes into the log and back in a header.
USABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Take the id that a proxy sent, or make one; add it to the lines; send it with the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        name = given if USABLE.fullmatch(given) else secrets.token_hex(8)
        token = request_id.set(name)
        try:
            response = self._get_response(request)
        finally:
            request_id.reset(token)
        response[HEADER] = name
        return response
