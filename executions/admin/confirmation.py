"""Actions that ask first: on the page of an execution or a task, in a dialog; on rows of a list, on a page."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from harbor_refresh.executions.admin.formatters import task_url
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.admin.unfold_api import ModelAdmin, action
from harbor_refresh.executions.text import plural

if TYPE_CHECKING:
    from harbor_refresh.executions.admin.unfold_api import Decorator


def confirmed_action(
    description: str,
    explanation: str,
    *,
    icon: str,
    url_path: str,
    submit: str,
    permission: str = "refresh",
    form: Any = None,
) -> "Decorator":
    """Decorate a method of an admin that takes the form and the id. It is shown to users with that permission.
    `form` is the class of a form that asks for more than yes or no."""
    asks = action(
        description=description,
        permissions=[permission],
        icon=icon,
        url_path=url_path,
        dialog={
            "title": f"{description}?",
            "description": explanation,
            "form_submit_text": submit,
            "form_class": form,
        },
    )

    def decorate(method: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        asked = asks(method)

        @wraps(asked)
        def answer(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
            if parse_id(object_id) is None:
                raise Http404(f"no row has the id {object_id!r}")
            response: HttpResponse = asked(admin, request, object_id=object_id)
            return response

        return answer

    return decorate


def asks_first(title: str, effect: str, submit: str) -> "Decorator":
    """Decorate an action that destroys rows of a list: it is carried out when its question is answered. `title`
    has a place for the number of rows."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def act(admin: ModelAdmin, request: HttpRequest, queryset: Any) -> Any:
            if is_confirmed(request):
                return method(admin, request, queryset)
            rows = [(row.pk, str(row)) for row in queryset]
            opts = admin.model._meta
            number = plural(len(rows), str(opts.verbose_name), str(opts.verbose_name_plural))
            return question(
                admin,
                request,
                rows,
                title=title,
                number=number,
                effect=effect,
                submit_text=submit,
                is_deletion=True,
            )

        return act

    return decorate


def is_confirmed(request: HttpRequest) -> bool:
    return request.POST.get("confirmed") == "yes"


def question(
    admin: ModelAdmin,
    request: HttpRequest,
    rows: Sequence[tuple[int, Any]],
    *,
    title: str,
    number: str,
    **context: Any,
) -> TemplateResponse:
    """Ask whether an action on these rows (id and name) is meant. The form sends the action again, with the
    answer. The template says what else the context holds."""
    chosen = [pk for pk, _ in rows]
    return TemplateResponse(
        request,
        "executions/admin/confirm_rows.html",
        {
            **admin.admin_site.each_context(request),
            "title": f"{title.format(number)}?",
            "number": number,
            "rows": rows,
            "action": request.POST.get("action", ""),
            "checkbox": ACTION_CHECKBOX_NAME,
            "checked": chosen or request.POST.getlist(ACTION_CHECKBOX_NAME)[:1],
            "opts": admin.opts,
            **context,
        },
    )


def redirect_to_execution(object_id: str) -> HttpResponse:
    url = admin_url("harbor_executions_execution_change", object_id)
    return HttpResponse(headers={"HX-Redirect": url})


def redirect_to_task(object_id: str) -> HttpResponse:
    return HttpResponse(headers={"HX-Redirect": task_url(int(object_id))})
