"""Users, groups and beat's schedule in the style of the other screens.

Only superusers add, change and delete users and groups. With Django's own pages, staff who may change users can
make themselves superusers: by the flag, a permission, a group, or a new password for a superuser.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django_celery_beat import admin as beats_admin
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from kombu.exceptions import OperationalError
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from harbor_refresh.executions.admin.base import ModelAdmin, NotedAdmin
from harbor_refresh.executions.news.audit import Target, Word, note, person_of
from harbor_refresh.executions.text import said_by

#: Its guessed types would forbid overriding its options.
beat: Any = beats_admin

for model, djangos in ((User, DjangoUserAdmin), (Group, DjangoGroupAdmin)):
    # a screen that is not Django's own may refuse more than ours: Django then says that the model is registered
    if type(admin.site.get_model_admin(model)) is djangos:
        admin.site.unregister(model)


class OnlySuperusersChange(ModelAdmin):
    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.is_superuser

    has_change_permission = has_delete_permission = has_add_permission


@admin.register(Group)
class GroupAdmin(OnlySuperusersChange, NotedAdmin, DjangoGroupAdmin, ModelAdmin):
    audit_kind = Target.GROUP


@admin.register(User)
class UserAdmin(OnlySuperusersChange, NotedAdmin, DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    audit_kind = Target.USER
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out the password for people who may only look: with Django 6, unfold would show them its hash."""
        fieldsets = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj):
            return fieldsets
        return [
            (title, options | {"fields": [field for field in options["fields"] if field != "password"]})
            for title, options in fieldsets
        ]


admin.site.unregister((PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule))


class TaskSelectWidget(UnfoldAdminSelectWidget, beat.TaskSelectWidget):  # type: ignore[misc]
    pass


class PeriodicTaskForm(beat.PeriodicTaskForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = TaskSelectWidget()

    def clean(self) -> Any:
        self.cleaned_data.setdefault("task", "refused")  # the original reads it, and fails if it was refused
        self.cleaned_data["headers"] = self.cleaned_data.get("headers") or "{}"  # an empty text would be NULL
        return super().clean()


def noted_action(name: str, description: str, word: Word = Word.CHANGE) -> Callable[..., None]:
    """An action of django-celery-beat, which gives it to all users who may see the list, and writes no log. This
    one takes the permission to change the schedule, and notes each row in the transaction of the change."""

    @admin.action(description=description, permissions=["change"])
    def act(self: ModelAdmin, request: HttpRequest, queryset: QuerySet[PeriodicTask]) -> None:
        with transaction.atomic():
            for row in queryset.order_by("pk"):
                verb = name.removesuffix("_tasks")
                note(person_of(request), word, Target.SCHEDULE, row.pk, detail=f"{row.name}: {verb}")
            try:
                getattr(beat.PeriodicTaskAdmin, name)(self, request, queryset)
            except (OperationalError, TypeError) as exc:  # the broker is down, or other arguments are taken
                messages.error(request, f"Not all of them were sent: {said_by(exc)}")

    return act


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(NotedAdmin, beat.PeriodicTaskAdmin, ModelAdmin):  # type: ignore[misc]
    audit_kind = Target.SCHEDULE
    form = PeriodicTaskForm
    date_hierarchy = None
    list_display = ("name", "enabled", "task", "scheduler", "last_run_at", "total_run_count")
    list_filter = ("enabled",)
    #: Those of django-celery-beat, without the schedules that have no page here.
    fieldsets = tuple(
        (title, options | {"fields": tuple(one for one in options["fields"] if one not in ("solar", "clocked"))})
        for title, options in beat.PeriodicTaskAdmin.fieldsets
    )

    enable_tasks = noted_action("enable_tasks", "Enable")
    disable_tasks = noted_action("disable_tasks", "Disable")
    toggle_tasks = noted_action("toggle_tasks", "Enable what is disabled, and disable the rest")
    run_tasks = noted_action("run_tasks", "Run now", Word.RUN)


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(NotedAdmin, ModelAdmin):
    audit_kind = Target.INTERVAL
    list_display = ("__str__", "every", "period")


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(NotedAdmin, beat.CrontabScheduleAdmin, ModelAdmin):  # type: ignore[misc]
    audit_kind = Target.CRONTAB
    fields = beat.CrontabScheduleAdmin.fields[1:]  # the first describes the crontab, and fails if it was refused
    inlines = ()
