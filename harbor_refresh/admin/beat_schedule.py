"""Beat's schedule in the style of the other screens: what runs, how often, when it last ran.

The rows that the program needs (tasks/schedule.py) keep their names and their tasks, and are not deleted here,
neither by themselves nor with the schedule that they follow: the database would delete them with it. Such a
row can be disabled instead.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
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

from harbor_refresh.admin.schedule_actions import ScheduleActions
from harbor_refresh.executions.access.audit import Kind
from harbor_refresh.executions.admin.audit import NotedAdmin
from harbor_refresh.executions.admin.base import ModelAdmin
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.tasks.schedule import NEEDED

if TYPE_CHECKING:  # guessed types would forbid overriding its options

    class BeatCrontabScheduleAdmin(ModelAdmin): ...
else:
    from django_celery_beat.admin import CrontabScheduleAdmin as BeatCrontabScheduleAdmin

for model in (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule):
    admin.site.unregister(model)


class TaskSelectWidget(UnfoldAdminSelectWidget, BeatTaskSelectWidget):
    pass


def refusal(name: str) -> str:
    return f"The program needs the row {name}. Disable it instead: a disabled row does not run."


class KeepsNeededRows(ModelAdmin):
    """Refuse to delete what would delete a row that the program needs, and say so."""

    def needed_by(self, objs: Iterable[Any]) -> list[str]:
        """Return the names of the needed rows that would be deleted with these objects."""
        column = str(self.opts.model_name).removesuffix("schedule")
        followed = PeriodicTask.objects.filter(**{f"{column}__in": [one.pk for one in objs]})
        return list(followed.filter(name__in=NEEDED).order_by("name").values_list("name", flat=True))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        to_delete, count, perms_needed, protected = super().get_deleted_objects(objs, request)
        return to_delete, count, perms_needed, [*protected, *map(refusal, self.needed_by(objs))]


class PeriodicTaskForm(BeatPeriodicTaskForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelectWidget()
        # people who may only look have a form without most fields
        if self.instance.name in NEEDED and "name" in self.fields:
            for name in ("name", "task", "regtask"):
                self.fields[name].disabled = True
            self.fields["name"].help_text = "The program needs this row. Disable it if it must not run."


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(KeepsNeededRows, NotedAdmin, ScheduleActions, ModelAdmin):
    audit_kind = Kind.SCHEDULE
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

    def needed_by(self, objs: Iterable[Any]) -> list[str]:
        return sorted(one.name for one in objs if one.name in NEEDED)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the row again, with the reason, instead of a confirmation that cannot be given."""
        row = PeriodicTask.objects.filter(pk=parse_id(object_id) or 0).first()
        if row is None or row.name not in NEEDED or not self.has_delete_permission(request, row):
            return super().delete_view(request, object_id, extra_context)
        messages.error(request, refusal(row.name))
        return HttpResponseRedirect(reverse("admin:django_celery_beat_periodictask_change", args=[row.pk]))


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(KeepsNeededRows, NotedAdmin, ModelAdmin):
    audit_kind = Kind.INTERVAL
    list_display = ("__str__", "every", "period")


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(KeepsNeededRows, NotedAdmin, BeatCrontabScheduleAdmin, ModelAdmin):
    audit_kind = Kind.CRONTAB
    inlines = ()
