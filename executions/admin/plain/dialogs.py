"""Actions on the page of one row. Unfold asks in a dialog; here a page of its own asks, and its form does it.

An action answers as unfold's dialogs want it: with the header HX-Redirect, or with a piece of a page. Here the
first becomes a redirect, and the second a page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse


class DialogForm(forms.Form):
    _form_submitted = forms.BooleanField(initial=True, widget=forms.HiddenInput)

    def __init__(self, request: HttpRequest, object_id: str, *args: Any, **options: Any) -> None:
        self.request = request
        self.object_id = object_id
        super().__init__(*args, **options)


@dataclass(frozen=True)
class PageAction:
    """An action, as the page of a row offers it."""

    title: str
    path: str
    name: str
    method: Callable[..., Any]
    permissions: Sequence[str]

    def is_allowed(self, admin: Any, request: HttpRequest, object_id: Any) -> bool:
        return all(getattr(admin, f"has_{one}_permission")(request, object_id) for one in self.permissions)


def action(
    *, description: str, permissions: Sequence[str], url_path: str, dialog: dict[str, Any], icon: str = ""
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Decorate a method of an admin that takes the form and the id: ask, and do it when the form comes."""

    def decorate(method: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(method)
        def answer(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
            if not all(getattr(admin, f"has_{one}_permission")(request, object_id) for one in permissions):
                raise PermissionDenied
            form_class = dialog.get("form_class") or DialogForm
            form = form_class(data=request.POST or None, request=request, object_id=object_id)
            if not form.is_valid():
                return _ask(admin, request, form, object_id, dialog)
            return _as_page(admin, request, method(admin, request, form, object_id=object_id))

        vars(answer).update(short_description=description, url_path=url_path, allowed_permissions=permissions)
        return answer

    return decorate


def _ask(admin: Any, request: HttpRequest, form: Any, object_id: str, dialog: dict[str, Any]) -> HttpResponse:
    context = {
        **admin.admin_site.each_context(request),
        "opts": admin.opts,
        "object_id": object_id,
        "title": dialog["title"],
        "dialog": dialog,
        "form": form,
    }
    return TemplateResponse(request, "executions/admin/plain/dialog.html", context)


def _as_page(admin: Any, request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if address := response.headers.get("HX-Redirect"):
        return HttpResponseRedirect(address)
    if "HX-Retarget" not in response.headers:
        return response
    piece = response.render() if isinstance(response, TemplateResponse) else response
    context = {
        **admin.admin_site.each_context(request),
        "opts": admin.opts,
        "title": "",
        "piece": piece.content.decode(),
    }
    kept = {name: value for name, value in response.headers.items() if name == "Cache-Control"}
    return TemplateResponse(request, "executions/admin/plain/answer.html", context, headers=kept)
