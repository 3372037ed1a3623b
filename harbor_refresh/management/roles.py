"""The ready roles: three groups, which `migrate` makes, with the permissions of docs/howto/admin.md.

A group gets its permissions when it is made. Later, `migrate` adds only permissions that it makes itself at that
moment, for new tables. So what a person took away stays away. A group that was deleted is made again, without
members. Only superusers edit users and groups (admin/own_service.py), because a group gives any permission.
"""

from typing import Any

from django.apps import AppConfig, apps
from django.db import transaction
from django.db.models.signals import post_migrate

VIEWER, OPERATOR, ADMINISTRATOR = ROLES = ("viewer", "operator", "administrator")
#: The apps whose permissions the roles have.
OURS = ("harbor_executions", "harbor_tasks", "django_celery_beat")
#: This page would name targets to an attacker.
HIDDEN_FROM_OTHERS = "apitoken"
#: An operator acts on these.
ACTED_ON = frozenset({"execution", "task", "job", "quarantine", "delivery", "pause"})
ACCOUNTS = frozenset({"view_user", "view_group"})


def may(role: str, app: str, codename: str) -> bool:
    """Whether the role has this permission, of one of our apps or of auth, from the beginning."""
    verb, _, model = codename.partition("_")
    if app == "auth":
        return role == ADMINISTRATOR and codename in ACCOUNTS
    if role == ADMINISTRATOR:
        return True
    if model == HIDDEN_FROM_OTHERS:
        return False
    return verb == "view" or (role == OPERATOR and verb == "change" and model in ACTED_ON)


def make_groups(app_config: AppConfig, using: str, **given: Any) -> None:
    """Make each group that is missing, and give each its permissions: all of them if it is new, else those that
    this makes. They are made here, because Django makes those of auth before those of our apps, and so that a
    killed `migrate` has made none."""
    from django.contrib.auth.management import create_permissions
    from django.contrib.auth.models import Group, Permission

    with transaction.atomic(using):
        known = set(Permission.objects.using(using).values_list("pk", flat=True))
        for label in OURS:
            create_permissions(apps.get_app_config(label), using=using, **given)
        rows = Permission.objects.using(using).filter(content_type__app_label__in=(*OURS, "auth"))
        found = list(rows.values_list("pk", "content_type__app_label", "codename"))
        for role in ROLES:
            group, is_made = Group.objects.using(using).get_or_create(name=role)
            given_now = [pk for pk, app, name in found if may(role, app, name) and (is_made or pk not in known)]
            group.permissions.add(*given_now)


def connect() -> None:
    auth = apps.get_app_config("auth")
    post_migrate.connect(make_groups, sender=auth, dispatch_uid="harbor_refresh.roles")
