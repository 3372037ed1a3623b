"""A client of the admin that is signed in, and what its pages show."""

import re
from typing import Any

from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client


def signed_in(*permissions: str, superuser: bool = False) -> Client:
    user = User.objects.create(username="operator", is_staff=True, is_active=True, is_superuser=superuser)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def ids_shown(response: Any) -> list[int]:
    return [row.pk for row in response.context["cl"].result_list]


def text(page: str) -> str:
    """What a person reads on it, with single blanks."""
    return " ".join(re.sub(r"<[^>]+>", " ", page.partition("<main")[2] or page).split())


def told(response: Any) -> list[str]:
    return [f"{one.level_tag}: {one}" for one in get_messages(response.wsgi_request)]


def act(client: Client, address: str, action: str, ids: list[int]) -> Any:
    """Run an action on rows of a list, and answer its confirmation, if it asks."""
    form = {"action": action, "_selected_action": ids, "index": 0, "confirmed": "yes"}
    return client.post(address, form)
