"""The ready roles: three groups, which `migrate` makes, with the permissions of docs/howto/admin.md.

A group gets its permissions when it is made. Later, `migrate` adds only permissions that it has made itself at
that moment, for new tables. So what a person took away stays away. A group that was deleted is made again, without
members. Only superusers edit users and groups (admin/own_service.py), because a group gives any permission.
"""

from typing import Any

from django.apps import AppConfig, apps
from django.db import connections, transaction
from django.db.models.signals import post_migrate, pre_migrate

VIEWER, OPERATOR, ADMINISTRATOR = ROLES = ("viewer", "operator", "administrator")
#: The apps whose permissions the roles have.
OURS = ("harbor_executions", "harbor_tasks", "django_celery_beat")
#: These pages would name targets to an attacker.
HIDDEN_FROM_VIEWERS = frozenset({"apitoken"})
#: An operator acts on these.
ACTED_ON = frozenset({"execution", "task", "job", "quarantine", "delivery", "pause"})
ACCOUNTS = frozenset({"user", "group"})


def may(role: str, app: str, codename: str) -> bool:
    """Whether the role has this permission from the beginning."""
    verb, _, model = codename.partition("_")
    if app == "auth":
        return role == ADMINISTRATOR and verb == "view" and model in ACCOUNTS
    if app not in OURS:
        return False
    if role == ADMINISTRATOR:
        return True
    if model in HIDDEN_FROM_VIEWERS:
        return False
    return verb == "view" or (role == OPERATOR and verb == "change" and model in ACTED_ON)


class Migration:
    """What one run of `migrate` found. If two run at once, then `get_or_create` and `add` let one of the two write
    each row, and the other one finds it."""

    def __init__(self) -> None:
        self.permissions: set[int] = set()

    def before(self, using: str, **_: Any) -> None:
        from django.contrib.auth.models import Permission

        if Permission._meta.db_table in connections[using].introspection.table_names():
            self.permissions = set(Permission.objects.using(using).values_list("pk", flat=True))

    def after(self, app_config: AppConfig, using: str, **given: Any) -> None:
        """Make the groups, and give them the permissions: all of them if the group is new. The permissions of our
        apps are made in the same transaction, so that the next run gives what a killed one has not given."""
        from django.contrib.auth.management import create_permissions
        from django.contrib.auth.models import Group, Permission

        if app_config.label != "auth":  # it comes before our apps
            return
        with transaction.atomic(using):
            for label in OURS:
                create_permissions(apps.get_app_config(label), using=using, **given)
            rows = Permission.objects.using(using).filter(content_type__app_label__in=(*OURS, "auth"))
            found = list(rows.values_list("pk", "content_type__app_label", "codename"))
            for role in ROLES:
                group, is_made = Group.objects.using(using).get_or_create(name=role)
                wanted = [
                    pk
                    for pk, app, codename in found
                    if may(role, app, codename) and (is_made or pk not in self.permissions)
                ]
                group.permissions.add(*wanted)


def connect() -> None:
    migration = Migration()
    pre_migrate.connect(migration.before, weak=False, dispatch_uid="harbor_refresh.roles.before")
    post_migrate.connect(migration.after, weak=False, dispatch_uid="harbor_refresh.roles.after")
