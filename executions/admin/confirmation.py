"""An action on the page of an execution: it asks for confirmation, acts, and shows the page again."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from executions.admin.search import parse_id
from executions.admin.unfold_api import action

if TYPE_CHECKING:
    from executions.admin.unfold_api import Decorator


def confirmed_action(description: str, explanation: str, *, icon: str, url_path: str, submit: str) -> "Decorator":
    """Decorate a method of ExecutionAdmin that takes the form and the id. It is shown to users who may change
    executions."""
    asks = action(
        description=description,
        permissions=["refresh"],
        icon=icon,
        url_path=url_path,
        dialog={"title": f"{description}?", "description": explanation, "form_submit_text": submit},
    )

    def decorate(method: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        asked = asks(method)

        @wraps(asked)
        def answer(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
            if parse_id(object_id) is None:
                raise Http404(f"no execution has the id {object_id!r}")
            response: HttpResponse = asked(admin, request, object_id=object_id)
            return response

        return answer

    return decorate


def redirect_to_execution(object_id: str) -> HttpResponse:
    url = reverse("admin:harbor_executions_execution_change", args=[object_id])
    return HttpResponse(headers={"HX-Redirect": url})
