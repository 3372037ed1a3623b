"""An action on the page of an execution: it asks first, acts, and shows the page again."""

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.urls import reverse

from executions.admin.looks import action

if TYPE_CHECKING:
    from executions.admin.looks import Decorator


def asks_first(description: str, explanation: str, *, icon: str, url_path: str, submit: str) -> "Decorator":
    """Of a method of ExecutionAdmin that gets the form and the id, for those who may change executions."""
    return action(
        description=description,
        permissions=["refresh"],
        icon=icon,
        url_path=url_path,
        dialog={"title": f"{description}?", "description": explanation, "form_submit_text": submit},
    )


def page_again(object_id: str) -> HttpResponse:
    url = reverse("admin:executions_execution_change", args=[object_id])
    return HttpResponse(headers={"HX-Redirect": url})
