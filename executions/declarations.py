"""The form in which an app declares its settings: the name, default, range and meaning of each, once.

`executions/conf.py` and `tasks/conf.py` declare them, `settings/env.py` reads them from the environment, and the
tables in docs/operations.md are compared with them. It imports no module of the project, because the settings
import it.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from django.conf import settings


@dataclass(frozen=True)
class Declared:
    """One setting. `kind` is the reader of settings/env.py. `takes` and `shown` are the texts of the
    documentation for the range and the default, where the values alone do not say enough."""

    name: str
    kind: str
    default: Any
    meaning: str
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    takes: str = ""
    shown: str = ""


def declared(name: str, kind: str, default: Any, meaning: str, **more: Any) -> Any:
    return field(metadata={"declared": Declared(name, kind, default, meaning, **more)})


def declarations(settings_class: type[Any]) -> dict[str, Declared]:
    """The declared settings of a class, by the names of its fields."""
    found = {one.name: one.metadata.get("declared") for one in fields(settings_class)}
    return {name: one for name, one in found.items() if one}


def values(declared_settings: dict[str, Declared]) -> dict[str, Any]:
    """Read Django's settings; those that are not set have their defaults."""
    return {name: getattr(settings, one.name, one.default) for name, one in declared_settings.items()}
