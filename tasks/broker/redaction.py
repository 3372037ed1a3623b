"""Mask secrets in a log line, and in the traceback of a job.

No line of ours names a secret. But an error of a library may quote an address, a header or a statement, and a job
may log a secret. So the last step before a text is written replaces each secret of the settings, wherever it
occurs, and everything that has the form of a secret. In a project, that are its own settings and those of
HARBOR_REFRESH.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from django.conf import settings

from harbor_refresh.executions.conf.declarations import key_of, of_project
from harbor_refresh.tasks.broker.redis_address import read_address

MASK = "***"
#: A shorter word would be masked in the middle of other words.
SHORTEST = 6
#: The settings that are secret as a whole.
SECRET_SETTINGS = ("SECRET_KEY", "REFRESH_HARBOR_SECRET", "REFRESH_REPORT_AUTHORIZATION")
#: The settings that hold a password in an address.
ADDRESSES = ("REDIS_URL", "CELERY_BROKER_URL")
#: The passwords of an address, also of one with several servers.
PASSWORDS = re.compile(r"://[^:@/]*:(.*?)@(?=[^@]*(?:;[a-z]+://|$))")
_NAMED = r"(?:password|passwd|secret(?:_access)?(?:_key)?|token|cookie)['\"]?\s*[=:]\s*(?:[bruf]{1,2}(?=['\"]))?"
#: Each pattern keeps the text before the secret.
FORMS = re.compile(
    r"(?P<before>(?<![a-z0-9+.-])[a-z0-9+.-]+://[^\s:@/]*:)[^\s@/]+(?=@)"
    rf"|(?P<single>{_NAMED}')(?:[^'\n\\]|\\.)+"
    rf'|(?P<double>{_NAMED}")(?:[^"\n\\]|\\.)+'
    r"|(?P<cookies>cookie\s*:\s*)(?![\s'\"])[^\n]*"
    r"|(?P<pairs>cookie\s*=\s*)[^\s'\",;&]+(?:;\s*[^\s'\",;&=]+=[^\s'\",;&]*)*"
    r"|(?P<header>authorization['\"]?\s*[:=]\s*['\"]?(?:[a-z-]+ )?)[^\s'\",;]+"
    r"|(?P<word>\b(?:bearer|harbor-secret) )[^\s'\",;]+"
    rf"|(?P<name>{_NAMED})[^\s'\",;&]+"
    r"|(?P<ours>\b(?:hr_|whsec_))[\w+/=-]{16,}",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Return the text with MASK in the place of each secret."""
    if known := _known():
        text = known.sub(MASK, text)
    return FORMS.sub(_masked, text)


def _masked(found: re.Match[str]) -> str:
    kept = next(group for group in found.groups() if group is not None)
    return kept + MASK


@cache
def _known() -> re.Pattern[str] | None:
    """The secrets of the settings, as they are and as they stand in an address or in JSON; the longest first."""
    words = {form for secret in _secrets() for form in _forms(secret)}
    usable = sorted((word for word in words if len(word) >= SHORTEST), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, usable))) if usable else None


def _forms(secret: str) -> Iterator[str]:
    for form in (secret, quote(secret, safe=""), unquote(secret)):
        in_json = json.dumps(form)[1:-1]
        yield from (form, in_json, in_json.replace("/", r"\/"))


def _values(*names: str) -> Iterator[str]:
    for name in names:
        yield from (str(one) for one in (getattr(settings, name, ""), of_project().get(key_of(name))) if one)


def _secrets() -> Iterator[str]:
    yield from _values(*SECRET_SETTINGS)
    yield from map(str, getattr(settings, "SECRET_KEY_FALLBACKS", ()))
    for address in _values(*ADDRESSES):
        with suppress(ValueError):
            yield from read_address(address).secrets
        for server in address.split(";"):  # those of RabbitMQ, and Celery's Sentinels
            with suppress(ValueError):
                yield unquote(urlsplit(server.strip()).password or "")
        # an address that cannot be read; a library that takes the ; of a password for the end of an address tells
        # a part of it
        for password in PASSWORDS.findall(address):
            yield from (password, *password.split(";"))
    of_broker: Any = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {})
    with suppress(AttributeError, TypeError):  # a project may have set anything
        yield str(of_broker.get("sentinel_kwargs", {}).get("password", ""))
    for database in settings.DATABASES.values():
        yield str(database.get("PASSWORD") or "")
