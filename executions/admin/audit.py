"""Ordinary screens whose changes are in the log of actions as well as in Django's own log."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Word, note, person_of
from harbor_refresh.executions.admin.base import ModelAdmin


class NotedAdmin(ModelAdmin):
    """Django calls these methods in the transaction of the addition, the change or the deletion."""

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
