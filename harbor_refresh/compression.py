"""Compress the pages of the admin, which are 250 kB and more, to a tenth.

Compression of a page that holds a secret beside text of the request can leak the secret by its length (BREACH).
The one secret in these pages is the CSRF token. Django masks it anew in each answer, and its GZipMiddleware adds a
random number of bytes. Tokens and secrets that are shown once are answers to a POST, which takes that token.
Answers of the API are not compressed, because that would cost more than making them; event streams are not,
because an event must not wait in a buffer.
"""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressedPages(GZipMiddleware):
    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if not is_page or not isinstance(response, HttpResponse):
            return response
        return super().process_response(request, response)
