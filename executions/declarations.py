"""The form in which an app declares its settings: the name, default, range and meaning of each, once.

`executions/conf.py` and `tasks/conf.py` declare them. Values are read when they are needed, from one of
two places:

1. A project that has installed the apps has them in the dictionary `HARBOR_REFRESH` of its settings. A key is the
   name without `REFRESH_`.
2. Our own service (`HARBOR_REFRESH_SERVICE`) has a Django setting of each name, which settings/base.py reads
   from the environment.

Nothing else of a project is read: it may have a `REDIS_URL` of its own, in its environment or its settings, that
means another server. The tables in docs/operations.md are compared with the declarations. This module imports no
module of the project, because the settings import it.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from django.conf import settings

PREFIX = "REFRESH_"


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

    @property
    def key(self) -> str:
        return key_of(self.name)


def declared(name: str, kind: str, default: Any, meaning: str, **more: Any) -> Any:
    return field(metadata={"declared": Declared(name, kind, default, meaning, **more)})


def declarations(settings_class: type[Any]) -> dict[str, Declared]:
    """The declared settings of a class, by the names of its fields."""
    found = {one.name: one.metadata.get("declared") for one in fields(settings_class)}
    return {name: one for name, one in found.items() if one}


def is_service() -> bool:
    return bool(getattr(settings, "HARBOR_REFRESH_SERVICE", False))


def of_project() -> dict[str, Any]:
    """What the project has set; empty if that is no dictionary, which a check tells."""
    given = getattr(settings, "HARBOR_REFRESH", {})
    return given if isinstance(given, dict) else {}


def key_of(name: str) -> str:
    return name.removeprefix(PREFIX)


def value(name: str, default: Any) -> Any:
    if is_service():
        return getattr(settings, name, default)
    return of_project().get(key_of(name), default)


def is_set(one: Declared) -> bool:
    """Whether the environment of the service names it, or the settings of a project."""
    return one.name in settings.SET_IN_ENVIRONMENT if is_service() else one.key in of_project()


def values(declared_settings: dict[str, Declared]) -> dict[str, Any]:
    """The settings by the names of their fields; those that are not set have their defaults."""
    if is_service():
        return {name: getattr(settings, one.name, one.default) for name, one in declared_settings.items()}
    given = of_project()
    return {
        name: _read(one, given[one.key]) if one.key in given else one.default
        for name, one in declared_settings.items()
    }


def _read(one: Declared, given: Any) -> Any:
    """The forms that settings/env.py gives the values of the environment."""
    if one.kind == "http_url" and given:
        return str(given).rstrip("/") + "/"
    if one.kind == "auto_or_integer" and given == "auto":
        return None
    if one.kind == "networks":
        return tuple(map(str, given))
    return given
