"""Beat's schedule in the style of the other screens: what runs, how often, when it last ran."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django_celery_beat.admin import PeriodicTaskForm as BeatPeriodicTaskForm
from django_celery_beat.admin import TaskSelectWidget as BeatTaskSelectWidget
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from harbor_refresh.executions.access.audit import Kind, Word, note, person_of
from harbor_refresh.executions.admin.base import ModelAdmin, NotedAdmin

if TYPE_CHECKING:  # guessed types would forbid overriding its options

    class BeatCrontabScheduleAdmin(ModelAdmin): ...

    class BeatPeriodicTaskAdmin(ModelAdmin):
        fieldsets: ClassVar[Any]
else:
    from django_celery_beat.admin import CrontabScheduleAdmin as BeatCrontabScheduleAdmin
    from django_celery_beat.admin import PeriodicTaskAdmin as BeatPeriodicTaskAdmin

admin.site.unregister((PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule))


class TaskSelectWidget(UnfoldAdminSelectWidget, BeatTaskSelectWidget):
    pass


class PeriodicTaskForm(BeatPeriodicTaskForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelectWidget()


def noted_action(name: str, description: str, word: Word = Word.CHANGE) -> Callable[..., None]:
    """An action of django-celery-beat, which gives it to all users who may see the list, and writes no log. This
    one takes the permission to change the schedule, and notes each row in the transaction of the change."""

    @admin.action(description=description, permissions=["change"])
    def act(self: ModelAdmin, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None:
        with transaction.atomic():
            for row in queryset.order_by("pk"):
                verb = name.removesuffix("_tasks")
                note(person_of(request), word, Kind.SCHEDULE, row.pk, detail=f"{row.name}: {verb}")
            getattr(BeatPeriodicTaskAdmin, name)(self, request, queryset)

    return act


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(NotedAdmin, BeatPeriodicTaskAdmin, ModelAdmin):
    audit_kind = Kind.SCHEDULE
    form = PeriodicTaskForm
    date_hierarchy = None
    list_display = ("name", "enabled", "task", "scheduler", "last_run_at", "total_run_count")
    list_filter = ("enabled",)
    #: Those of django-celery-beat, without the schedules that have no page here.
    fieldsets = tuple(
        (title, options | {"fields": tuple(one for one in options["fields"] if one not in ("solar", "clocked"))})
        for title, options in BeatPeriodicTaskAdmin.fieldsets
    )

    enable_tasks = noted_action("enable_tasks", "Enable")
    disable_tasks = noted_action("disable_tasks", "Disable")
    toggle_tasks = noted_action("toggle_tasks", "Enable what is disabled, and disable the rest")
    run_tasks = noted_action("run_tasks", "Run now", Word.RUN)


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(NotedAdmin, ModelAdmin):
    audit_kind = Kind.INTERVAL
    list_display = ("__str__", "every", "period")


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(NotedAdmin, BeatCrontabScheduleAdmin, ModelAdmin):
    audit_kind = Kind.CRONTAB
    inlines = ()
