"""Actions of the admin in the log of actions, and in Django's own log."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpRequest

from harbor_refresh.executions.access import audit
from harbor_refresh.executions.access.audit import Kind, Note, Word, note, person_of
from harbor_refresh.executions.admin.base import ModelAdmin

FLAGS = {Word.DELETE: DELETION}
MAX_REPR = 200


@contextmanager
def noted(
    request: HttpRequest, verb: Word, kind: Kind, row: Model | None, target: str | int = "", **known: Any
) -> Iterator[Note]:
    """Write an act on this row, or on `target` if there is no row, to both logs, in the transaction of the act.
    See harbor_refresh.executions.access.audit.noted."""
    key = target if row is None else (row.pk or target)
    with audit.noted(person_of(request), verb, kind, key, **known) as entry:
        yield entry
        if row is not None and not entry.skip:
            write_django_log(request, verb, row, entry)


class NotedAdmin(ModelAdmin):
    """An ordinary screen whose additions, changes and deletions are in the log of actions as well. Django calls
    these methods in the transaction of the change."""

    audit_kind: Kind

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        return self._with_note(request, Word.CREATE, super().log_addition(request, obj, message))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        return self._with_note(request, Word.CHANGE, super().log_change(request, obj, message))

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            note(person_of(request), Word.DELETE, self.audit_kind, obj.pk, detail=str(obj))
        return super().log_deletions(request, queryset)

    def _with_note(self, request: HttpRequest, verb: Word, entry: LogEntry) -> LogEntry:
        detail = f"{entry.object_repr}: {entry.get_change_message()}"
        note(person_of(request), verb, self.audit_kind, entry.object_id or "", detail=detail)
        return entry


def write_django_log(request: HttpRequest, verb: Word, row: Model, entry: Note) -> None:
    LogEntry.objects.create(
        user_id=request.user.pk or 0,  # the admin has signed the user in
        content_type_id=ContentType.objects.get_for_model(row).pk,
        object_id=str(row.pk),
        object_repr=str(row)[:MAX_REPR],
        action_flag=FLAGS.get(verb, CHANGE),
        change_message=f"{verb.capitalize()}: {entry.outcome}{f', {entry.detail}' if entry.detail else ''}",
    )
