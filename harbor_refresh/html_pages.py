"""HTML pages of the service: they are compressed, and the page for an address that does not exist is the same in
every environment (Django's own page of the development settings lists every address that there is)."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.csrf import csrf_exempt


class CompressedPages(GZipMiddleware):
    """Compress the pages of the admin, which are 250 kB and more, to a tenth.

    Compression of a page that holds a secret beside text of the request can leak the secret by its length
    (BREACH). The one secret in these pages is the CSRF token. Django masks it anew in each answer, and its
    GZipMiddleware adds a random number of bytes. Tokens and secrets that are shown once are answers to a POST,
    which takes that token. Answers of the API are not compressed, because that would cost more than making them;
    event streams are not, because an event must not wait in a buffer.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if not is_page or not isinstance(response, HttpResponse):
            return response
        return super().process_response(request, response)


@csrf_exempt
def not_found(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
    """Answer every address that no other URL matches. One that lacks only its final slash is redirected, as in
    Django."""
    if settings.APPEND_SLASH and request.method in ("GET", "HEAD") and not request.path_info.endswith("/"):
        try:
            is_known = resolve(f"{request.path_info}/").func is not not_found
        except Resolver404:
            is_known = False
        if is_known:
            return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
    return render(request, "404.html", status=404)


class NotFoundPages(MiddlewareMixin):
    """Answer a view that finds nothing with the same page."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return render(request, "404.html", status=404) if isinstance(exception, Http404) else None
