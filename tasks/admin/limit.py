"""The screen of limits: what an administrator sets counts at once, until it is reset to what the code says."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Word, noted, person_of
from harbor_refresh.executions.admin.base import NotedAdmin, never
from harbor_refresh.executions.admin.formatters import NOTHING, column
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs import limits
from harbor_refresh.tasks.models import Limit


def _in_words(concurrency: int | None, rate: str | None) -> str:
    words = [f"{concurrency:,} at once"] if concurrency is not None else []
    return ", ".join([*words, *([rate] if rate else [])]) or NOTHING


def _declared(row: Limit) -> str:
    rate = row.declared.get("rate")
    return _in_words(row.declared.get("concurrency"), rate and limits.rate_text(rate, row.declared["per"]))


@page(Limit)
class LimitAdmin(NotedAdmin):
    audit_kind = Kind.LIMIT
    list_display = ("name", "counts", "declared_as", "changed_by")
    fields = ("name", "concurrency", ("rate", "per"), "declared_as", "changed_by")
    readonly_fields = ("name", "declared_as", "changed_by")
    ordering = ("name",)
    actions = ("reset",)

    counts = column(lambda row: _in_words(row.concurrency, limits.rate_text(row.rate, row.per)), "Counts")
    declared_as = column(_declared, "The code says")

    has_add_permission = has_delete_permission = never

    def save_model(self, request: HttpRequest, obj: Limit, form: Any, change: bool) -> None:
        values = {name: form.cleaned_data[name] for name in ("concurrency", "rate", "per")}
        limits.change(obj.pk, values, person_of(request).name)

    @admin.action(description="Reset to the declared limit", permissions=["change"])
    def reset(self, request: HttpRequest, queryset: QuerySet[Limit]) -> None:
        count = 0
        for one in queryset:
            with noted(person_of(request), Word.CHANGE, Kind.LIMIT, one.pk) as entry:
                entry.skip = not limits.reset([one.pk])
                entry.detail = "reset to what the code says"
                count += not entry.skip
        messages.success(request, f"{plural(count, 'limit')} reset.")
