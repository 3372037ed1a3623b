"""The actions on executions that were chosen in the list or on a page.

Each execution has a transaction of its own, with its entries in the logs. Work done before an error stays done.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.contrib import admin, messages
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from harbor_refresh.executions.admin.base import Question, ask, is_confirmed
from harbor_refresh.executions.admin.filters import filter_of, parse_id
from harbor_refresh.executions.admin.lists import ReadOnlyAdmin
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import HELD, NAMED, PASSING, REFERENCE, absence_translated, sqlstate
from harbor_refresh.executions.errors import (
    Contended,
    DatabaseDown,
    NoSuchExecution,
    NoSuchTask,
    QueueUnavailable,
    Refused,
)
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news.audit import Target, Word, noted, outcome_of, person_of
from harbor_refresh.executions.queries.chosen_pages import BULK, Counted, chooses_bulk, count, highest_id
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.operations import bulk
from harbor_refresh.tasks.operations.bulk import VERBS, Done, done_of
from harbor_refresh.tasks.queue.connection import absence_remembered

#: The most executions that one request acts on, and the most ids that a message lists.
MAX_CHOSEN, MAX_LISTED = 100, 5
RELEASED = "released from quarantine and will be refreshed soon"
#: The permissions of the verbs that need others than `run`.
PERMISSIONS: dict[str, str] = {Word.REFRESH: "act", Word.DELETE: "remove", Word.RELEASE: "release"}
#: A confirmation counts for so long at most.
COUNT_SECONDS = 1.0


def may_delete(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.delete_execution")


def may_view_jobs(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_tasks.view_job")


def may_run_again(request: HttpRequest, execution: Execution) -> bool:
    """A person who may not delete executions may not go on with a deletion of many."""
    is_deletion = execution.vendor_type == BULK and execution.extra_attrs.get("verb") == Word.DELETE
    return not is_deletion or may_delete(request)


def may_unless_harbors(permission: str) -> Callable[..., bool]:
    """Like `may`, for actions that Harbor does while this service is attached to it."""
    return lambda self, request, obj=None: not is_attached() and request.user.has_perm(permission)


def execution_action(verb: str, description: str, title: str, effect: str) -> Callable[..., HttpResponse | None]:
    """An action on executions: the request does the verb to a few, and workers do it to many."""
    question = Question(title, effect, is_deletion=verb == Word.DELETE)

    @admin.action(description=description, permissions=[PERMISSIONS.get(verb, "run")])
    def act(self: Any, request: HttpRequest, queryset: QuerySet[Execution]) -> HttpResponse | None:
        is_of_the_list = "action" in request.POST and verb in VERBS
        if is_of_the_list and request.POST.get("select_across") == "1":
            return _on_all_that_match(self, request, Word(verb), question)
        ids = list(queryset.order_by("pk").values_list("pk", flat=True)[: MAX_CHOSEN + 1])
        if len(ids) <= MAX_CHOSEN and not is_confirmed(request):
            return ask(self, request, question, rows=[(pk, pk) for pk in ids])
        act_now(request, verb, ids)
        return None

    return act


def _on_all_that_match(
    screen: ReadOnlyAdmin, request: HttpRequest, verb: Word, question: Question
) -> HttpResponse | None:
    try:
        matching = filter_of(request.GET)
        if is_confirmed(request):
            return _in_background(request, verb, matching)
        counted = count(matching, seconds=COUNT_SECONDS)
    except Refused as exc:
        messages.error(request, f"Nothing was done: {exc}.")
        return None
    if counted.is_complete and not counted.count:
        messages.warning(request, "Nothing was done: no execution matches any more.")
        return None
    chosen = matching.as_text() or "none, so all executions"
    return ask(
        screen, request, question, of=how_many(counted), hidden=[("highest", counted.highest)], matching=chosen
    )


def _in_background(request: HttpRequest, verb: Word, matching: Any) -> HttpResponse:
    """Ask for the verb for the executions that were counted, and not for later ones."""
    if verb in (Word.RETRY, Word.RESUME) and chooses_bulk(matching) and not may_delete(request):
        raise Refused("a deletion of many may be among them, and you may not delete executions")
    counted = parse_id(request.POST.get("highest", ""))
    highest = None if counted is None else min(counted, highest_id())
    execution = bulk.ask(verb, matching, person_of(request), everything=True, highest=highest)
    return HttpResponseRedirect(admin_url("harbor_executions_execution_change", execution.pk))


def how_many(counted: Counted) -> str:
    if counted.is_complete:
        return plural(counted.count, "execution")
    return f"more than {counted.count:,} executions" if counted.count else "an unknown number of executions"


def act_now(request: HttpRequest, verb: str, ids: Sequence[int]) -> None:
    """Release these executions from quarantine, or do the verb to them."""
    is_release = verb == Word.RELEASE
    if len(ids) > MAX_CHOSEN:
        on_all = "Choose all that match, and workers do it"
        more = "Type: manage.py harbor quarantine --release-all" if is_release else on_all
        messages.error(request, f"Nothing was done: {MAX_CHOSEN:,} at once is the most. {more}.")
        return
    kind, did = (Target.QUARANTINE, RELEASED) if is_release else (Target.EXECUTION, VERBS[verb].did)
    total, left = Done(), []
    with errors_shown(request):
        for execution in Execution.objects.filter(pk__in=ids).defer("extra_attrs").order_by("pk"):
            if verb in (Word.RETRY, Word.RESUME) and not may_run_again(request, execution):
                left.append(execution.pk)
                continue
            with noted(person_of(request), verb, kind, execution.pk) as entry:
                one = [execution.pk]
                done = done_of(len(release(one)), one) if is_release else VERBS[verb].act(one)
                entry.detail = done.failed.get(execution.pk, "")
                entry.outcome = outcome_of(done.changed, failed=bool(done.failed))
            total += done
            left += [execution.pk] * done.skipped
    if total.changed:
        messages.success(request, f"{plural(total.changed, 'execution')} {did}.")
    if left:
        messages.info(request, f"Left as they are: {id_list(left, at_most=MAX_LISTED)}.")
    for pk, reason in list(total.failed.items())[:MAX_LISTED]:
        messages.error(request, f"Execution {pk}: {reason}")
    if len(total.failed) > MAX_LISTED:
        messages.error(request, f"{len(total.failed) - MAX_LISTED:,} more failed.")


@contextmanager
def errors_shown(request: HttpRequest) -> Iterator[None]:
    """Show a message if a server is down. Work done before stays done, and its message is shown too.

    Redis is waited for only once, however many executions are chosen.
    """
    try:
        with absence_translated(), absence_remembered():
            yield
    except (QueueUnavailable, DatabaseDown) as exc:
        messages.error(request, f"{exc}. The rest was left as it is: try again when it is back.")
    except (NoSuchTask, Task.DoesNotExist):
        messages.warning(request, "Nothing was done: the task does not exist any more.")
    except (NoSuchExecution, Execution.DoesNotExist):
        messages.warning(request, "An execution does not exist any more. The rest was left as it is: try again.")
    except Contended as exc:
        messages.error(request, f"{exc} The rest was left as it is: try again.")
    except DatabaseError as exc:
        why = {REFERENCE: NAMED, **dict.fromkeys(PASSING, f"PostgreSQL: {HELD}")}.get(sqlstate(exc) or "")
        if why is None:
            raise
        messages.error(request, f"{why}. The rest was left as it is: try again.")
