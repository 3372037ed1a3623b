"""The form in which an app declares its settings, and the one validator of their values.

`executions/conf.py` and `tasks/conf.py` declare each setting once. A project has the values in its dictionary
`HARBOR_REFRESH`, and a bad one is a check (tasks/checks/settings.py). Our own service (`HARBOR_REFRESH_SERVICE`)
has a Django setting of each name, which settings/base.py reads from the environment; a bad one ends the program.
Nothing else of a project is read, because its own `REDIS_URL` may mean another server. The settings import this
module, so it imports none of the project.
"""

import base64
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

PREFIX = "REFRESH_"
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
#: The largest number of a setting without another limit: a year of seconds.
LARGEST = 86_400 * 365
#: One signing secret, or two while one replaces the other.
MOST_SIGNING_SECRETS = 2


@dataclass(frozen=True)
class Declared:
    """One setting. `kind` is a name in KINDS. `meaning` is Markdown, with links from the folder docs/reference.
    `of_service`: a project has no such setting, because it has no API, no hook and no Harbor."""

    name: str
    kind: str
    default: Any
    meaning: str
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    of_service: bool = False

    @property
    def key(self) -> str:
        return key_of(self.name)

    @property
    def is_secret(self) -> bool:
        """Whether no message may show its value."""
        return self.kind in ("secret", "signing_secrets")


def declared(name: str, kind: str, default: Any, meaning: str, **more: Any) -> Any:
    return field(metadata={"declared": Declared(name, kind, default, meaning, **more)})


def declarations(settings_class: type[Any]) -> dict[str, Declared]:
    """The declared settings of a class, by the names of its fields."""
    return {one.name: one.metadata["declared"] for one in fields(settings_class) if "declared" in one.metadata}


# The validator


def parsed(one: Declared, text: str) -> Any:
    """Return the value that the text of a variable means. Raises ValueError."""
    return checked(one, KINDS[one.kind].parse(text))


def checked(one: Declared, value: Any) -> Any:
    """Return this value in the form that the program uses. Raises ValueError or TypeError if it does not fit."""
    kind = KINDS[one.kind]
    if value == one.default:
        return value
    if not isinstance(value, kind.of):
        raise TypeError(value)
    return kind.check(one, value)


def takes(one: Declared, *, as_text: bool) -> str:
    """Say what fits: as the text of a variable, or as a value of Python."""
    kind = KINDS[one.kind]
    words = kind.takes if as_text else kind.takes_value or kind.takes
    low = "" if one.at_least is None else f" from {_shown(one.at_least)}"
    high = LARGEST if one.at_most is None else one.at_most
    return words + ", ".join(one.choices) + (low and f"{low} to {_shown(high)}")


def _shown(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


def _number(one: Declared, value: Any) -> Any:
    low, high = -LARGEST if one.at_least is None else one.at_least, one.at_most or LARGEST
    if isinstance(value, bool) or not low <= value <= high:
        raise ValueError(value)
    return value


def _integer(one: Declared, value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return int(_number(one, value))


def _choice(one: Declared, value: str) -> str:
    """Spell the value as the choice is, whatever its case."""
    return {choice.casefold(): choice for choice in one.choices}[value.casefold()]


def _signing_secrets(one: Declared, value: str) -> str:
    """Secrets of Standard Webhooks."""
    found = _words(value)
    contents = [base64.b64decode(word.removeprefix("whsec_").encode(), validate=True) for word in found]
    are_right = all(word.startswith("whsec_") for word in found) and all(24 <= len(one) <= 64 for one in contents)
    if not are_right or len(found) > MOST_SIGNING_SECRETS:
        raise ValueError(one.name)
    return ",".join(found)


def _http_url(one: Declared, value: str) -> str:
    """The base address of a path, with a slash at its end."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(value)
    return value.rstrip("/") + "/"


def _networks(one: Declared, value: Collection[Any]) -> tuple[str, ...]:
    """Networks, or single addresses, of IPv4 and IPv6."""
    return tuple(str(ip_network(str(word), strict=False)) for word in value)


def _counts(one: Declared, value: Mapping[Any, Any]) -> dict[str, int]:
    """Whole numbers by name."""
    if not all(isinstance(name, str) and name for name in value):
        raise TypeError(value)
    return {name: _integer(one, number) for name, number in value.items()}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _pairs(text: str) -> dict[str, int]:
    pairs = [word.rpartition(":") for word in _words(text)]
    return {name.strip(): int(number) for name, _, number in pairs}


def _truth(text: str) -> bool:
    if text.lower() not in TRUE | FALSE:
        raise ValueError(text)
    return text.lower() in TRUE


@dataclass(frozen=True)
class ValueKind:
    """`parse` makes a value of a variable's text. A value is `of` these types; `check` returns it in its form, or
    raises. `takes` says what fits, and `takes_value` how Python writes that, if it is something else."""

    parse: Callable[[str], Any]
    of: type | tuple[type, ...]
    takes: str
    takes_value: str = ""
    check: Callable[[Declared, Any], Any] = lambda _, value: value


LISTS = (list, tuple, set, frozenset)
SIGNING_SECRETS = "one secret or two, separated by a comma, each whsec_ followed by base64 of 24 to 64 bytes"
KINDS = {
    "flag": ValueKind(_truth, bool, "one of " + ", ".join(sorted(TRUE | FALSE)), "True or False"),
    "integer": ValueKind(int, int, "a whole number", check=_integer),
    "number": ValueKind(float, (int, float), "a number", check=_number),
    "one_of": ValueKind(str, str, "one of ", check=_choice),
    "text": ValueKind(str, str, "text"),
    "secret": ValueKind(str, str, "a secret"),
    "signing_secrets": ValueKind(str, str, SIGNING_SECRETS, check=_signing_secrets),
    "http_url": ValueKind(str, str, "http://host[:port]/path or https://host[:port]/path", check=_http_url),
    "networks": ValueKind(
        _words,
        LISTS,
        "networks separated by commas, such as 10.1.0.0/16,192.0.2.7",
        "a list of networks, such as ['10.1.0.0/16', '192.0.2.7']",
        _networks,
    ),
    "counts": ValueKind(
        _pairs,
        Mapping,
        "NAME:N separated by commas, N",
        "a dictionary of whole numbers by vendor type, each",
        _counts,
    ),
}


# Where the values are


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
        name: _of_project(one, given[one.key]) if one.key in given and not one.of_service else one.default
        for name, one in declared_settings.items()
    }


def _of_project(one: Declared, given: Any) -> Any:
    """A bad value stays as it is: the default of a limit, such as of networks, could allow more than was meant."""
    try:
        return checked(one, given)
    except (ValueError, TypeError, LookupError):
        return given
