"""Beat's schedule in the style of the other screens: what runs, how often, when it last ran."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
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

from executions.admin.unfold_api import ModelAdmin

if TYPE_CHECKING:  # guessed types would forbid overriding its options

    class BeatPeriodicTaskAdmin(ModelAdmin): ...

    class BeatCrontabScheduleAdmin(ModelAdmin): ...
else:
    from django_celery_beat.admin import CrontabScheduleAdmin as BeatCrontabScheduleAdmin
    from django_celery_beat.admin import PeriodicTaskAdmin as BeatPeriodicTaskAdmin

for model in (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule):
    admin.site.unregister(model)


class TaskSelectWidget(UnfoldAdminSelectWidget, BeatTaskSelectWidget):
    pass


class PeriodicTaskForm(BeatPeriodicTaskForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelectWidget()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(BeatPeriodicTaskAdmin, ModelAdmin):
    form = PeriodicTaskForm
    date_hierarchy = None
    list_display = ("name", "enabled", "task", "scheduler", "last_run_at", "total_run_count")
    list_filter = ("enabled",)
    fieldsets = (
        (None, {"fields": ("name", "regtask", "task", "enabled", "description")}),
        (
            "Schedule",
            {
                "fields": (
                    "interval",
                    "crontab",
                    "crontab_translation",
                    "start_time",
                    "last_run_at",
                    "one_off",
                )
            },
        ),
        ("Arguments", {"fields": ("args", "kwargs"), "classes": ("collapse",)}),
        (
            "Options",
            {
                "fields": (
                    "expires",
                    "expire_seconds",
                    "queue",
                    "exchange",
                    "routing_key",
                    "priority",
                    "headers",
                ),
                "classes": ("collapse",),
            },
        ),
    )


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ModelAdmin):
    list_display = ("__str__", "every", "period")


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(BeatCrontabScheduleAdmin, ModelAdmin):
    inlines = ()
