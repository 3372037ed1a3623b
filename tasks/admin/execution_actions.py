"""The actions on executions that were chosen in the list or on a page; and the screen of quarantine.

Each execution has a transaction of its own, with its entries in the logs. Work done before an error stays done.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Outcome, Word, noted, person_of
from harbor_refresh.executions.admin.base import ReadOnlyAdmin, may
from harbor_refresh.executions.admin.formatters import column, execution_link, moment, status_label
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import Contended, DatabaseAway, NoSuchTask, OwnedByHarbor, QueueUnavailable
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.operations.bulk import VERBS, Done, done_of
from harbor_refresh.tasks.queue.connection import absence_remembered

#: The most executions that one request acts on, and the most ids that a message lists.
MAX_CHOSEN, MAX_LISTED = 100, 5
#: The actions that Harbor does while this service is attached to it.
OF_HARBOR = ("stop", "retry", "resume", "remove")


def may_delete(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.delete_execution")


def may_run_again(request: HttpRequest, execution: Execution) -> bool:
    """A person who may not delete executions may not go on with a deletion of many."""
    is_deletion = execution.vendor_type == BULK and execution.extra_attrs.get("verb") == Verb.DELETE
    return not is_deletion or may_delete(request)


def harbors() -> dict[str, bool]:
    """The actions that the pages leave out, because Harbor does them (ModelAdmin.useful)."""
    return dict.fromkeys(OF_HARBOR, False) if is_attached() else {}


def act_now(request: HttpRequest, verb: Verb, ids: Sequence[int]) -> None:
    _act(request, ids, Word(verb), _refresh if verb == Verb.REFRESH else VERBS[verb].act, VERBS[verb].did)


def _refresh(ids: Sequence[int]) -> Done:
    """Unlike that of an action on many, it waits for rows that another transaction has locked."""
    outcome = refresh(ids)
    return done_of(outcome.changed, ids, outcome.failed)


def release_now(request: HttpRequest, ids: Sequence[int]) -> None:
    _act(request, ids, Word.RELEASE, _release, "released from quarantine and will be refreshed soon")


def _release(ids: Sequence[int]) -> Done:
    return done_of(len(release(ids)), ids)


def _act(
    request: HttpRequest, ids: Sequence[int], word: Word, act: Callable[[Sequence[int]], Done], did: str
) -> None:
    if len(ids) > MAX_CHOSEN:
        most = f"{MAX_CHOSEN:,} at once is the most"
        messages.error(request, f"Nothing was done: {most}. Choose all that match, and workers do it.")
        return
    kind = Kind.QUARANTINE if word == Word.RELEASE else Kind.EXECUTION
    total, left = Done(), []
    with errors_shown(request):
        for execution in Execution.objects.filter(pk__in=ids).order_by("pk"):
            if word in (Word.RETRY, Word.RESUME) and not may_run_again(request, execution):
                left.append(execution.pk)
                continue
            with noted(person_of(request), word, kind, execution.pk) as entry:
                done = act([execution.pk])
                entry.detail = done.failed.get(execution.pk, "")
                entry.outcome = (
                    Outcome.FAILED if done.failed else Outcome.DONE if done.changed else Outcome.UNCHANGED
                )
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
    """Show a message if a server is away. Work done before stays done, and its message is shown too.

    Redis is waited for only once, however many executions are chosen.
    """
    try:
        with absence_translated(), absence_remembered():
            yield
    except (QueueUnavailable, DatabaseAway) as exc:
        messages.error(request, f"{exc}. The rest was left as it is: try again when it is back.")
    except OwnedByHarbor as exc:
        messages.error(request, f"{exc}.")
    except (NoSuchTask, Task.DoesNotExist):
        messages.warning(request, "Nothing was done: the task does not exist any more.")
    except Contended as exc:
        messages.error(request, f"{exc} The rest was left as it is: try again.")


@page(Quarantine)
class QuarantineAdmin(ReadOnlyAdmin):
    list_display = ("execution_number", "vendor", "status", "attempts", "reason", "since", "until")
    list_display_links = None
    list_select_related = ("execution",)
    large = ("execution__extra_attrs",)
    fields = (("execution_number", "vendor"), "status", "attempts", "reason", ("since", "until"))
    ordering = ("-at", "pk")
    search_fields = ("pk", "reason__icontains")
    search_help_text = "Execution id, or words of the reason"
    list_head = "tasks/admin/quarantine_head.html"
    actions = ("release",)

    has_release_permission = may("harbor_executions.change_quarantine")

    @admin.action(description="Release", permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[Quarantine]) -> None:
        release_now(request, list(queryset.values_list("pk", flat=True)))

    execution_number = column("execution_id", "Execution", execution_link)
    vendor = column(lambda row: row.execution.vendor_type, "Vendor")
    status = column("execution.status", "Last known status", status_label)
    since = column("at", "Since")
    until = column("at", "Tried again after", lambda at: moment(at + timedelta(seconds=pacing.QUARANTINE_SECONDS)))
