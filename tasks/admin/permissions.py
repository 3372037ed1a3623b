"""Who may act on executions, and so on their tasks, their jobs and on actions on many."""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest

from harbor_refresh.executions.attachment import is_attached

#: The verbs of actions that Harbor does while this service is attached to it. In the list their names are
#: `VERB_selected`, and on a page their paths are `VERB`.
HARBORS = ("stop", "retry", "resume", "remove")


def may_act(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.change_execution")


def may_delete(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.delete_execution")


def ours(actions: Iterable[Any]) -> list[Any]:
    """Leave out the actions of a page that are Harbor's."""
    return [one for one in actions if not (is_attached() and one.path in HARBORS)]
