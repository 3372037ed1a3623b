"""The actions on rows of beat's schedule: enable, disable, toggle and run.

django-celery-beat gives them to each user who may see the list, and writes no log. Here they take the permission
to change the schedule, and each row has its entries in the logs, in the transaction of the change. A run is a
message to the workers. What if the process dies after the message and before the commit: the task runs, and has no
entry.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django_celery_beat.models import PeriodicTask

from harbor_refresh.executions.access.audit import Kind, Word
from harbor_refresh.executions.admin.audit import noted

if TYPE_CHECKING:  # guessed types would forbid overriding its options
    from harbor_refresh.executions.admin.base import ModelAdmin

    class BeatPeriodicTaskAdmin(ModelAdmin):
        def enable_tasks(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None: ...
        def disable_tasks(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None: ...
        def toggle_tasks(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None: ...
        def run_tasks(self, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None: ...
else:
    from django_celery_beat.admin import PeriodicTaskAdmin as BeatPeriodicTaskAdmin

Rows = QuerySet[PeriodicTask]


class ScheduleActions(BeatPeriodicTaskAdmin):
    @admin.action(description="Enable", permissions=["change"])
    def enable_tasks(self, request: HttpRequest, queryset: Rows) -> None:
        self._act(request, Word.CHANGE, queryset, super().enable_tasks)

    @admin.action(description="Disable", permissions=["change"])
    def disable_tasks(self, request: HttpRequest, queryset: Rows) -> None:
        self._act(request, Word.CHANGE, queryset, super().disable_tasks)

    @admin.action(description="Enable what is disabled, and disable the rest", permissions=["change"])
    def toggle_tasks(self, request: HttpRequest, queryset: Rows) -> None:
        self._act(request, Word.CHANGE, queryset, super().toggle_tasks)

    @admin.action(description="Run now", permissions=["change"])
    def run_tasks(self, request: HttpRequest, queryset: Rows) -> None:
        self._act(request, Word.RUN, queryset, super().run_tasks)

    @staticmethod
    def _act(request: HttpRequest, word: Word, queryset: Rows, act: Any) -> None:
        """Lock the rows, act, and note each row whose act did something."""
        with transaction.atomic():
            before = {row.pk: row for row in queryset.select_related(None).select_for_update().order_by("pk")}
            act(request, queryset)
            for row in PeriodicTask.objects.filter(pk__in=before).order_by("pk"):
                with noted(request, word, Kind.SCHEDULE, row) as entry:
                    entry.detail = f"{row.name}: {'enabled' if row.enabled else 'disabled'}"
                    entry.skip = word == Word.CHANGE and row.enabled == before[row.pk].enabled
