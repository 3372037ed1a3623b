"""What the admin lets a person do, and which test of a browser does it.

    @acts("execution.stop", "execution.resume")
    def test_...

An act is `MODEL.NAME`: an action of the list or of the page of a model, a form (`add`, `change`), or a verb of the
page of the queue. test_every_action.py compares the acts of the tests with those of the admin.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import RequestFactory

from harbor_refresh.tasks.admin.queue import VERBS
from harbor_refresh.tasks.models import Pause

Test = TypeVar("Test", bound=Callable[..., Any])
#: The tests that do an act.
DONE_BY: dict[str, list[str]] = defaultdict(list)
FORMS = ("add", "change", "delete")
#: Models whose forms, and whose action that deletes rows, are Django's or django-celery-beat's own.
OF_DJANGO = {"crontabschedule", "group", "intervalschedule", "periodictask", "user"}


def acts(*names: str) -> Callable[[Test], Test]:
    """Say what the test does in the browser."""

    def note(test: Test) -> Test:
        for name in names:
            DONE_BY[name].append(test.__name__)
        return test

    return note


def acts_of_the_admin() -> set[str]:
    """Return all that a superuser may do, from the screens that are registered."""
    return {
        f"{model._meta.model_name}.{name}"
        for model, screen in admin.site._registry.items()
        for name in _acts_of(screen)
    }


def as_root() -> HttpRequest:
    """The request of a superuser."""
    request = RequestFactory().get("/admin/")
    request.user = User(username="root", is_staff=True, is_superuser=True)
    return request


def _acts_of(screen: Any) -> Iterator[str]:
    request = as_root()
    own = screen.opts.model_name not in OF_DJANGO
    yield from (name for name in screen.get_actions(request) if own or name != "delete_selected")
    yield from (f"{name} on its page" for name in getattr(screen, "page_actions", ()))
    if screen.model is Pause:
        yield from VERBS
    elif own:
        yield from (form for form in FORMS if getattr(screen, f"has_{form}_permission")(request))
