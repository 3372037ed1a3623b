"""Live pages: an open page asks for what has changed, and static/executions/live.js shows it without a reload.

The answer is JSON: `parts` are pieces of the page by name, `reload` says that the page must be loaded anew. A
page may read more from it, as the dashboard does. If nothing has changed since the last answer, it is 304 without
a body.
"""

import hashlib
import json
from typing import Any

from django.http import HttpRequest, HttpResponse


def encoded(news: dict[str, Any]) -> bytes:
    return json.dumps(news).encode()


def answer(request: HttpRequest, body: bytes) -> HttpResponse:
    """Answer with this body, or with 304 if the page has it."""
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(body, content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return response
