"""The form in which an app declares its settings, and the one validator of their values.

`executions/conf` and `tasks/conf` declare each setting once. A project has the values in its dictionary
`HARBOR_REFRESH`, and a bad one is a check (tasks/checks/settings.py). Our own service (`HARBOR_REFRESH_SERVICE`)
has a Django setting of each name, which settings/base.py reads from the environment; a bad one ends the program.
Nothing else of a project is read, because its own `REDIS_URL` may mean another server. The settings import this
module, so it imports none of the project.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from django.conf import settings

PREFIX = "REFRESH_"
Number = TypeVar("Number", int, float)
#: The largest number of a setting without another limit: a year of seconds.
LARGEST = 86_400 * 365


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
        return self.kind == "secret"


def declared(name: str, kind: str, default: Any, meaning: str, **more: Any) -> Any:
    return field(metadata={"declared": Declared(name, kind, default, meaning, **more)})


def declarations(settings_class: type[Any]) -> dict[str, Declared]:
    """The declared settings of a class, by the names of its fields."""
    return {one.name: one.metadata["declared"] for one in fields(settings_class) if "declared" in one.metadata}


# The validator


def checked(one: Declared, value: Any) -> Any:
    """Return this value, or what this text of a variable means, in the form that the program uses. Raises
    ValueError, TypeError or LookupError if it does not fit."""
    return value if value == one.default else KINDS[one.kind].check(one, value)


def takes(one: Declared, *, as_text: bool) -> str:
    """Say what fits: as the text of a variable, or as a value of Python."""
    kind = KINDS[one.kind]
    words = kind.takes if as_text else kind.takes_value or kind.takes
    low = "" if one.at_least is None else f" from {_shown(one.at_least)}"
    high = LARGEST if one.at_most is None else one.at_most
    return words + ", ".join(one.choices) + (low and f"{low} to {_shown(high)}")


def _shown(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


def _flag(_: Declared, value: Any) -> bool:
    return FLAGS[str(value).lower()]


def _integer(one: Declared, value: Any) -> int:
    return _in_range(one, int(str(value)))


def _number(one: Declared, value: Any) -> float:
    return _in_range(one, float(str(value)))


def _in_range(one: Declared, value: Number) -> Number:
    low, high = -LARGEST if one.at_least is None else one.at_least, one.at_most or LARGEST
    if not low <= value <= high:
        raise ValueError(value)
    return value


def _text(_: Declared, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _choice(one: Declared, value: Any) -> str:
    """Spell the value as the choice is, whatever its case."""
    return {choice.casefold(): choice for choice in one.choices}[str(value).casefold()]


def _http_url(one: Declared, value: Any) -> str:
    """The base address of a path, with a slash at its end."""
    parts = urlsplit(_text(one, value))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(value)
    return str(value).rstrip("/") + "/"


def _networks(_: Declared, value: Any) -> tuple[str, ...]:
    """Networks, or single addresses, of IPv4 and IPv6."""
    return tuple(str(ip_network(word, strict=False)) for word in _words(value))


def _counts(one: Declared, value: Any) -> dict[str, int]:
    """Whole numbers by name."""
    found = value if isinstance(value, Mapping) else dict(word.rpartition(":")[::2] for word in _words(value))
    if not all(isinstance(name, str) and name.strip() for name in found):
        raise TypeError(value)
    return {name.strip(): _integer(one, number) for name, number in found.items()}


def _words(value: Any) -> list[str]:
    words = value.split(",") if isinstance(value, str) else map(str, value)
    return [word.strip() for word in words if word.strip()]


class ValueKind(NamedTuple):
    """`check` returns a value or a text in its form, or raises. `takes` says what fits, and `takes_value` how
    Python writes that, if it is something else."""

    check: Callable[[Declared, Any], Any]
    takes: str
    takes_value: str = ""


FLAGS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)
KINDS = {
    "flag": ValueKind(_flag, f"one of {', '.join(sorted(FLAGS))}", "True or False"),
    "integer": ValueKind(_integer, "a whole number"),
    "number": ValueKind(_number, "a number"),
    "one_of": ValueKind(_choice, "one of "),
    "text": ValueKind(_text, "text"),
    "secret": ValueKind(_text, "a secret"),
    "http_url": ValueKind(_http_url, "http://host[:port]/path or https://host[:port]/path"),
    "networks": ValueKind(
        _networks,
        "networks separated by commas, such as 10.1.0.0/16,192.0.2.7",
        "a list of networks, such as ['10.1.0.0/16', '192.0.2.7']",
    ),
    "counts": ValueKind(
        _counts, "NAME:N separated by commas, N", "a dictionary of whole numbers by vendor type, each"
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


def is_set(one: Declared) -> bool:
    """Whether the environment of the service names it, or the settings of a project."""
    return one.name in settings.SET_IN_ENVIRONMENT if is_service() else one.key in of_project()


def values(declared_settings: dict[str, Declared]) -> dict[str, Any]:
    """The settings by the names of their fields; those that are not set have their defaults."""
    return {name: value(one) for name, one in declared_settings.items()}


def value(one: Declared) -> Any:
    """A bad value stays as it is: the default of a limit, such as of networks, could allow more than was meant."""
    if is_service():
        return getattr(settings, one.name, one.default)
    given = one.default if one.of_service else of_project().get(one.key, one.default)
    try:
        return checked(one, given)
    except (ValueError, TypeError, LookupError):
        return given
