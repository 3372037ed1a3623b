"""HTML pages of the service are compressed."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressedPages(GZipMiddleware):
    """Compress the pages of the admin, which are 250 kB and more, to a tenth. Answers of the API are not
    compressed, because that costs more than making them.

    The length of a compressed page can leak a secret that stands beside text of the request (BREACH). The one
    secret in these pages is the CSRF token, which Django masks anew in each answer. Tokens that are shown once are
    answers to a POST, which takes that token."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if not is_page or not isinstance(response, HttpResponse):  # an event must not wait in a buffer
            return response
        return super().process_response(request, response)
