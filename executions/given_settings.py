"""What is wrong with `HARBOR_REFRESH`, the settings of a project (executions/declarations.py).

The service has none of this: settings/env.py ends it at once for a bad variable. A project goes on; `manage.py
check` and the log of its workers tell it.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from django.conf import settings
from django.core.checks import CheckMessage, Error

from harbor_refresh.executions.declarations import (
    PREFIX,
    Declared,
    checked,
    is_service,
    key_of,
    of_project,
    takes,
)


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
        if one := known.get(key):
            try:
                checked(one, value)
            except (ValueError, TypeError, LookupError):
                yield Error(
                    f"HARBOR_REFRESH[{key!r}] is {'not what it takes' if one.is_secret else repr(value)}.",
                    hint=f"It takes {takes(one, as_text=False)}.",
                    id="harbor_refresh.E003",
                )
