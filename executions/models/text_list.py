"""A column that holds a list of texts."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.checks import CheckMessage


class TextList(ArrayField):  # type: ignore[type-arg]
    """Django 6 refuses an ArrayField unless `django.contrib.postgres` is among the apps. A list of texts needs
    nothing of that app, and a host should not have to install it. In migrations it is an ArrayField."""

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return [one for one in super().check(**kwargs) if one.id != "postgres.E005"]

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.contrib.postgres.fields.ArrayField", args, kwargs
