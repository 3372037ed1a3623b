"""What is wrong with `HARBOR_REFRESH`, the settings of a project (executions/declarations.py).

The service has none of this: settings/env.py ends it at once for a bad variable. A project goes on; `manage.py
check` and the log of its workers tell it.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error

from harbor_refresh.executions.declarations import PREFIX, Declared, is_service, key_of, of_project


def problems(known: Mapping[str, Declared], *others: str) -> list[CheckMessage]:
    """Compare the settings of the project with all that there are, by their keys; `others` are keys that have no
    range."""
    if is_service():
        return []
    given = getattr(settings, "HARBOR_REFRESH", {})
    if not isinstance(given, dict):
        return [
            Error(
                f"HARBOR_REFRESH is a {type(given).__name__}, so none of its settings applies.",
                hint='It takes a dictionary, such as HARBOR_REFRESH = {"REDIS_URL": "redis://localhost:6379/0"}.',
                id="harbor_refresh.E001",
            )
        ]
    return [*_unknown([*known, *others]), *_bad(known)]


def _unknown(names: list[str]) -> Iterator[CheckMessage]:
    for key in of_project():
        if key in names:
            continue
        near = get_close_matches(key_of(str(key).upper()), names, n=1, cutoff=0)
        hint = f"The nearest name is {near[0]!r}." if near else None
        if isinstance(key, str) and key.startswith(PREFIX) and key_of(key) in names:
            hint = f"Leave out {PREFIX}: {key_of(key)!r}."
        yield Error(f"HARBOR_REFRESH has no setting {key!r}.", hint=hint, id="harbor_refresh.E002")


def _bad(known: Mapping[str, Declared]) -> Iterator[CheckMessage]:
    for key, value in of_project().items():
        if (one := known.get(key)) and value != one.default and not _fits(one, value):
            yield Error(
                f"HARBOR_REFRESH[{key!r}] is {'not what it takes' if one.kind in SECRETS else repr(value)}.",
                hint=f"It takes {_takes(one)}.",
                id="harbor_refresh.E003",
            )


#: Kinds whose values no message shows.
SECRETS = ("secret", "signing_secrets")


def _fits(one: Declared, value: Any) -> bool:
    try:
        return bool(KINDS[one.kind](one, value))
    except (ValueError, TypeError):
        return False


def _is_in_range(one: Declared, value: Any) -> bool:
    low, high = one.at_least, one.at_most
    return (low is None or value >= low) and (high is None or value <= high)


def _is_integer(one: Declared, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and _is_in_range(one, value)


def _is_number(one: Declared, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_in_range(one, value)


def _is_text(one: Declared, value: Any) -> bool:
    return isinstance(value, str)


def _is_address(one: Declared, value: Any) -> bool:
    parts = urlsplit(value)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query


def _are_networks(one: Declared, value: Any) -> bool:
    return not isinstance(value, str) and all(ip_network(str(word), strict=False) for word in value)


def _are_counts(one: Declared, value: Any) -> bool:
    return all(isinstance(name, str) and _is_integer(one, number) for name, number in value.items())


KINDS: dict[str, Callable[[Declared, Any], bool]] = {
    "integer": _is_integer,
    "optional_integer": _is_integer,
    "auto_or_integer": lambda one, value: value in (None, "auto") or _is_integer(one, value),
    "seconds": _is_number,
    "one_of": lambda one, value: value in (*one.choices, one.default),
    "text": _is_text,
    "secret": _is_text,
    "signing_secrets": _is_text,
    "http_url": _is_address,
    "networks": _are_networks,
    "counts": _are_counts,
}
#: What each kind takes as a value of Python, where the declaration tells how its variable is written.
FORMS = {
    "integer": "a whole number",
    "optional_integer": "a whole number",
    "auto_or_integer": "'auto' or a whole number",
    "seconds": "a number",
    "networks": "a list of networks, such as ['10.1.0.0/16', '192.0.2.7']",
    "counts": "a dictionary of whole numbers by vendor type",
    "signing_secrets": "text: one secret, or two with a comma between them",
}


def _takes(one: Declared) -> str:
    if one.kind == "one_of":
        return "one of " + ", ".join(repr(choice) for choice in one.choices)
    low = "" if one.at_least is None else f" from {one.at_least:,g}"
    high = "" if one.at_most is None else f" to {one.at_most:,g}"
    return (FORMS.get(one.kind) or one.takes or "text") + low + high
