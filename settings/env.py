"""Read the environment variables of the service; executions/conf/declarations.py says which values they take.

A bad value ends the program at once with one line that names the variable, what it got and what it takes, because
a service that starts with a wrong setting is worse than a service that does not start.
"""

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from harbor_refresh.executions.conf.declarations import Declared, checked
from harbor_refresh.executions.conf.declarations import takes as what_it_takes
from harbor_refresh.tasks.broker.connecting import TAKES as BROKER_TAKES
from harbor_refresh.tasks.broker.connecting import check_broker
from harbor_refresh.tasks.broker.redis_address import TAKES as REDIS_TAKES
from harbor_refresh.tasks.broker.redis_address import BadAddress, read_address

#: Values of examples, which are long enough to pass for secrets.
KNOWN_SECRETS = {
    "changemechangeme",
    "change-me-please",
    "not-a-secure-key",
    "not-a-secure-string",
    "passwordpassword",
    "secretsecretsecret",
    "for development only: protects nothing",
    "for tests only: protects nothing",
}
MIN_SECRET = 16
DATABASE_TAKES = "postgresql://user:password@host:port/name"
MIN_DIFFERENT = 5


class BadSetting(SystemExit):
    """Raised for a variable that cannot be used; ends the program with one line."""


def _bad(name: str, got: str, takes: str) -> BadSetting:
    return BadSetting(f"{name}: got {got}, takes {takes}. Correct it and start again.")


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def value(name: str, kind: str, default: Any, **limits: Any) -> Any:
    """Read a variable that no app declares."""
    return read(Declared(name, kind, default, "", **limits))


def read(one: Declared, default: Any = None) -> Any:
    """Read the variable of a declared setting, within its range. The service may have a default of its own."""
    default = one.default if default is None else default
    raw = secret(one.name, "") if one.is_secret else text(one.name)
    try:
        found = checked(one, raw) if raw else default
    except (ValueError, TypeError, LookupError):
        got = "something else" if one.is_secret else repr(without_password(os.environ[one.name]))
        raise _bad(one.name, got, what_it_takes(one, as_text=True)) from None
    return default | found | _by_name(one) if one.kind == "counts" else found


def _by_name(one: Declared) -> dict[str, int]:
    """Whole numbers of variables for one name each, such as IMAGE_SCAN_EXECUTION_RETENTION_COUNT for IMAGE_SCAN in
    VENDOR_EXECUTION_RETENTION_COUNT. They have precedence."""
    suffix = one.name[one.name.index("_") :]
    return {
        variable.removesuffix(suffix): read(replace(one, name=variable, kind="integer"))
        for variable in sorted(os.environ)
        if variable.endswith(suffix) and variable not in (one.name, suffix) and text(variable)
    }


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def secret(name: str, default: str | None = None) -> str:
    """The variable, or the content of the file that NAME_FILE names; never shown in a message."""
    path = text(f"{name}_FILE")
    if path:
        try:
            if content := Path(path).read_text(encoding="utf-8").strip():
                return content
            why = "it is empty"
        except (OSError, UnicodeDecodeError) as exc:
            why = getattr(exc, "strerror", "it is no text")
        raise _bad(f"{name}_FILE", repr(path), f"the path of a readable file with the secret in it ({why})")
    value = text(name, default or "")
    if not value and default is None:
        raise BadSetting(f"{name}: got nothing, takes a secret. Set {name} or {name}_FILE.")
    return value


def refuse_known_secret(name: str) -> None:
    """End the program if the secret is set and empty, is one that everyone knows, or is too short to be one."""
    value = secret(name, "")
    is_empty = not value and name in os.environ
    is_known = value.casefold() in KNOWN_SECRETS or len(value) < MIN_SECRET or len(set(value)) < MIN_DIFFERENT
    if is_empty or (value and is_known):
        got = "an empty value" if is_empty else "a secret that can be guessed"
        takes = f"a random secret of at least {MIN_SECRET} characters"
        raise BadSetting(f"{name}: got {got}, takes {takes}. Set another, or remove {name}.")


def redis_url(*names: str, default: str) -> str:
    """The first of `names` that is set. Its passwords, if it has any, are never shown."""
    return _address(names, default, read_address, REDIS_TAKES)


def broker_url(name: str, *, default: str) -> str:
    """The address of a Redis or a RabbitMQ, with the same promise."""
    return _address((name,), default, check_broker, BROKER_TAKES)


def _address(names: tuple[str, ...], default: str, check: Callable[[str], object], takes: str) -> str:
    for name in names:
        value = secret(name, "")
        if not value:
            continue
        try:
            check(value)
        except ValueError as exc:  # also for an invalid IPv6 address
            reason = f"; this has {exc}" if isinstance(exc, BadAddress) else ""
            raise _bad(name, repr(without_password(value)), takes + reason) from None
        return value
    return default


def database(name: str, default: str) -> dict[str, Any]:
    """A Django database from a PostgreSQL URL; parameters after `?` go to libpq unchanged."""
    url = secret(name, default)
    found: dict[str, Any] = {}
    if url.startswith(("postgres://", "postgresql://")):
        with suppress(ProgrammingError, ValueError):
            found = conninfo_to_dict(url)
    ports = str(found.get("port", "")).replace(",", "")
    if not (found.get("dbname") or found.get("service")) or not (ports or "0").isdecimal():
        raise _bad(name, repr(without_password(url)), DATABASE_TAKES)
    keys = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    parts = {key: str(found.pop(parameter, "")) for key, parameter in keys.items()}
    return {"ENGINE": "django.db.backends.postgresql", **parts, "OPTIONS": found}


def without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    scheme = head.split("://", 1)[0] if "://" in head else ""
    # behind a ; there may be another login, which cannot be told from a host
    shown = f"{scheme}://***@{tail.partition(';')[0]}" if at else url
    return re.sub(r"(?i)(password\s*=\s*)('[^']*'|[^&\s]*)", r"\1***", shown)


def kind_of_process() -> str:
    """web, worker, beat, migrate or command. The web process is known by its application, because each server of
    WSGI has other words; the others are known by their words."""
    if not {"harbor_refresh.wsgi", "harbor_refresh.logs.for_gunicorn"}.isdisjoint(sys.modules):
        return "web"
    program, words = Path(sys.argv[0]).parts[-2:], sys.argv[1:]
    if "celery" in program:
        return next((kind for kind in ("worker", "beat") if kind in words), "command")
    return "migrate" if words[:1] == ["migrate"] else "command"
