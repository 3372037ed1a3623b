"""What of `django.contrib.postgres` works without that app among the installed apps.

Django 6 refuses each field of the app if it is not installed. Lists of texts need nothing of it, and a host should
not have to install it for ours.
"""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

try:
    from django.contrib.postgres.fields import ArrayField
except ImportError as exc:  # it names psycopg2, for which Django looks last
    raise ImproperlyConfigured(
        'No driver of PostgreSQL can be loaded. Type: pip install "psycopg[binary]"'
    ) from exc


class TextList(ArrayField):  # type: ignore[type-arg]
    def _check_postgres_installed(self, *_: object) -> list[Any]:
        return []

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.contrib.postgres.fields.ArrayField", args, kwargs
