"""Users and groups: only superusers add, change and delete them.

With Django's own pages, staff who may change users can make themselves superusers: by the flag, by a permission or
a group, or by a new password for a superuser. Here, of staff's permissions only the one to view has an effect.
"""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from harbor_refresh.executions.access.audit import Kind
from harbor_refresh.executions.admin.base import ModelAdmin, NotedAdmin

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
    audit_kind = Kind.GROUP


@admin.register(User)
class UserAdmin(OnlySuperusersChange, NotedAdmin, DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    audit_kind = Kind.USER
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
