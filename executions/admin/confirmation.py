"""Actions that ask first, on a page: those on rows of a list, on the page of a row, and the verbs of the queue.

The page sends the same request again, with `confirmed`. Nothing is done before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django import forms
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest
from django.template.response import TemplateResponse

from harbor_refresh.executions.admin.base import ModelAdmin
from harbor_refresh.executions.text import plural


@dataclass(frozen=True)
class Question:
    """What a confirmation says. `title` begins with the word of the button, and has a place for the rows; `form`
    asks for more than yes or no."""

    title: str
    effect: str
    is_deletion: bool = False
    form: type[forms.Form] | None = None

    @property
    def submit(self) -> str:
        return self.title.split()[0]


def asks_first(question: Question) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate an action: it is carried out when its question is answered. It gets the form, if there is one."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def act(admin: ModelAdmin, request: HttpRequest, queryset: Any) -> Any:
            confirmed = is_confirmed(request)
            form = question.form(request.POST if confirmed else None) if question.form else None
            if confirmed and (form is None or form.is_valid()):
                return method(admin, request, queryset, *([form] if form else []))
            return ask(admin, request, question, rows=[(row.pk, str(row)) for row in queryset], form=form)

        return act

    return decorate


def is_confirmed(request: HttpRequest) -> bool:
    return request.POST.get("confirmed") == "yes"


def ask(
    admin: ModelAdmin,
    request: HttpRequest,
    question: Question,
    *,
    rows: Sequence[tuple[int, Any]] = (),
    of: str = "",
    hidden: Sequence[tuple[str, Any]] = (),
    cancel: str = "",
    form: forms.Form | None = None,
    **context: Any,
) -> TemplateResponse:
    """Ask whether an action on these rows (id and name) is meant, or on `of`. `hidden` is sent again as well."""
    opts = admin.opts
    if "action" in request.POST:  # of the list
        of = of or plural(len(rows), str(opts.verbose_name), str(opts.verbose_name_plural))
        checked = [pk for pk, _ in rows] or request.POST.getlist(ACTION_CHECKBOX_NAME)[:1]
        across = "1" if request.POST.get("select_across") == "1" else "0"
        of_list = (("action", request.POST["action"]), ("index", "0"), ("select_across", across))
        hidden = [*of_list, *((ACTION_CHECKBOX_NAME, pk) for pk in checked), *hidden]
        context["number"] = of
        cancel = request.get_full_path()
    elif rows:
        of = f"{opts.verbose_name} {rows[0][0]}"
    return admin.own_page(
        request,
        "executions/admin/confirmation.html",
        f"{question.title.format(of)}?",
        question=question,
        rows=rows,
        opts_of_rows=opts,
        hidden=hidden,
        cancel=cancel or "../change/",
        form=form or (question.form() if question.form else None),
        **context,
    )
