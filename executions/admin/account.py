"""Users and groups, in the looks of the rest."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from executions.admin.looks import ModelAdmin

admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    pass


# a project with users of its own shows them as it likes
if admin.site.is_registered(User):
    admin.site.unregister(User)

    @admin.register(User)
    class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
        form = UserChangeForm
        add_form = UserCreationForm
        change_password_form = AdminPasswordChangeForm
