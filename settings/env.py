"""Typed readers of environment variables.

Owns how a setting is read and how a bad one is reported. A bad value ends the program at once with one line that
names the variable, what it got and what it takes, because a service that starts with a wrong setting is worse than
a service that does not start.
"""

import base64
import os
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from harbor_refresh.tasks.broker.connecting import TAKES as BROKER_TAKES
from harbor_refresh.tasks.broker.connecting import check_broker
from harbor_refresh.tasks.redis_address import TAKES as REDIS_TAKES
from harbor_refresh.tasks.redis_address import BadAddress, read_address

T = TypeVar("T")

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}

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
MIN_DIFFERENT = 5
MAX_SIGNING_SECRETS = 2


class BadSetting(SystemExit):
    """Raised for a variable that cannot be used; ends the program with one line."""


def _bad(name: str, got: str, takes: str) -> BadSetting:
    return BadSetting(f"{name}: got {got!r}, takes {takes}. Correct it and start again.")


def _read(name: str, default: T, parse: Callable[[str], T], takes: str) -> T:
    raw = os.environ.get(name)
    if raw is None or not raw.strip():
        return default
    try:
        return parse(raw.strip())
    except ValueError:
        raise _bad(name, raw, takes) from None


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def flag(name: str, default: bool = False) -> bool:
    def parse(raw: str) -> bool:
        if raw.lower() not in TRUE | FALSE:
            raise ValueError(raw)
        return raw.lower() in TRUE

    return _read(name, default, parse, "one of " + ", ".join(sorted((TRUE | FALSE) - {""})))


def integer(name: str, default: int, *, at_least: int, at_most: int) -> int:
    def parse(raw: str) -> int:
        value = int(raw)
        if not at_least <= value <= at_most:
            raise ValueError(raw)
        return value

    return _read(name, default, parse, f"a whole number from {at_least:,} to {at_most:,}")


def optional_integer(name: str, *, at_least: int, at_most: int) -> int | None:
    """A whole number, or None if it is not set, because no default would be right."""
    return integer(name, 0, at_least=at_least, at_most=at_most) if text(name) else None


def seconds(name: str, default: float, *, at_least: float, at_most: float = 86_400 * 365) -> float:
    def parse(raw: str) -> float:
        value = float(raw)
        if not at_least <= value <= at_most:
            raise ValueError(raw)
        return value

    return _read(name, default, parse, f"a number of seconds from {at_least:g} to {at_most:,.0f}")


def auto_or_integer(name: str, *, at_least: int, at_most: int) -> int | None:
    """A whole number, or None for `auto`: the program decides."""

    def parse(raw: str) -> int | None:
        if raw.lower() == "auto":
            return None
        value = int(raw)
        if not at_least <= value <= at_most:
            raise ValueError(raw)
        return value

    return _read(name, None, parse, f"'auto' or a whole number from {at_least} to {at_most:,}")


def counts(name: str, default: dict[str, int], *, at_least: int, at_most: int) -> dict[str, int]:
    """Whole numbers by name, as `NAME:N` with commas between them. A name that is not given has its default.
    A variable of its own for one name, such as IMAGE_SCAN_EXECUTION_RETENTION_COUNT for IMAGE_SCAN in
    VENDOR_EXECUTION_RETENTION_COUNT, has precedence."""

    def parse(raw: str) -> dict[str, int]:
        pairs = [word.rpartition(":") for word in raw.split(",") if word.strip()]
        found = {key.strip(): int(number) for key, _, number in pairs}
        if not all(found) or not all(at_least <= number <= at_most for number in found.values()):
            raise ValueError(raw)
        return found

    takes = f"NAME:N with commas between them, N from {at_least:,} to {at_most:,}"
    no_counts: dict[str, int] = {}
    given = default | _read(name, no_counts, parse, takes)
    suffix = name[name.index("_") :]
    for variable in sorted(os.environ):
        if variable.endswith(suffix) and variable not in (name, suffix) and text(variable):
            given[variable.removesuffix(suffix)] = integer(variable, 0, at_least=at_least, at_most=at_most)
    return given


def one_of(name: str, default: str, *choices: str) -> str:
    """One of the choices. The value's case is ignored; the result is spelled as the choice is."""

    def parse(raw: str) -> str:
        for choice in choices:
            if choice.casefold() == raw.casefold():
                return choice
        raise ValueError(raw)

    return _read(name, default, parse, "one of " + ", ".join(choices))


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def secret(name: str, default: str | None = None) -> str:
    """The variable, or the content of the file that NAME_FILE names; never shown in a message."""
    path = text(f"{name}_FILE")
    if path:
        try:
            content = Path(path).read_text(encoding="utf-8").strip()
        except OSError as exc:
            takes = f"the path of a readable file ({exc.strerror})"
            raise _bad(f"{name}_FILE", path, takes) from None
        except UnicodeDecodeError:
            content = ""
        if not content:
            raise _bad(f"{name}_FILE", path, "the path of a file with the secret as text in it")
        return content
    value = text(name)
    if value:
        return value
    if default is None:
        raise BadSetting(f"{name}: got nothing, takes a secret. Set {name} or {name}_FILE.")
    return default


def signing_secrets(name: str, default: str) -> str:
    """Secrets of Standard Webhooks: one, or two while one replaces the other; never shown in a message."""
    found = [one.strip() for one in secret(name, default).split(",") if one.strip()]
    if len(found) > MAX_SIGNING_SECRETS or not all(_is_signing_secret(one) for one in found):
        takes = "one secret or two with a comma between them, each whsec_ and base64 of 24 to 64 bytes"
        raise BadSetting(f"{name}: got something else, takes {takes}. Correct it and start again.")
    return ",".join(found)


def _is_signing_secret(text: str) -> bool:
    try:
        content = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError:
        return False
    return text.startswith("whsec_") and 24 <= len(content) <= 64


def refuse_missing_packages(name: str, modules: tuple[str, ...], requirements: str) -> None:
    """End the program if it lacks packages that this variable asks for."""
    if missing := [module for module in modules if not _is_installed(module)]:
        takes = f"the packages of {requirements}, and {', '.join(missing)} is missing"
        raise BadSetting(f"{name}: got {text(name)!r}, takes {takes}. Install them, or remove {name}.")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def refuse_known_secret(name: str) -> None:
    """End the program if the secret is set and empty, is one that everyone knows, or is too short to be one."""
    value = secret(name, "")
    is_empty = not value and name in os.environ
    is_known = value.casefold() in KNOWN_SECRETS or len(value) < MIN_SECRET or len(set(value)) < MIN_DIFFERENT
    if is_empty or (value and is_known):
        got = "an empty value" if is_empty else "a secret that can be guessed"
        takes = f"a random secret of at least {MIN_SECRET} characters"
        raise BadSetting(f"{name}: got {got}, takes {takes}. Set another, or remove {name}.")


def http_url(name: str) -> str:
    """The base address of a path, with a slash at its end. Empty if it is not set."""

    def parse(raw: str) -> str:
        parts = urlsplit(raw)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(raw)
        return raw.rstrip("/") + "/"

    return _read(name, "", parse, "http://host[:port]/path or https://host[:port]/path")


def networks(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Networks, or single addresses, of IPv4 and IPv6."""

    def parse(raw: str) -> tuple[str, ...]:
        return tuple(str(ip_network(word.strip(), strict=False)) for word in raw.split(",") if word.strip())

    return _read(name, default, parse, "networks with commas between them, such as 10.1.0.0/16,192.0.2.7")


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
            raise _bad(name, _without_password(value), takes + reason) from None
        return value
    return default


def database(name: str, default: str) -> dict[str, Any]:
    """A Django database from a PostgreSQL URL; parameters after `?` go to libpq unchanged."""
    url = secret(name, default)
    takes = "postgresql://user:password@host:port/name"
    try:
        known = urlsplit(url).scheme in ("postgres", "postgresql")
        parameters = conninfo_to_dict(url) if known else {}
    except (ProgrammingError, ValueError):
        parameters = {}
    ports = [port for port in str(parameters.get("port", "")).split(",") if port]
    named = parameters.get("dbname") or parameters.get("service")
    if not named or not all(port.isdecimal() for port in ports):
        raise _bad(name, _without_password(url), takes)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parameters.pop("dbname", ""),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": str(parameters.pop("port", "")),
        "OPTIONS": parameters,
    }


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    scheme = head.split("://", 1)[0] if "://" in head else ""
    # behind a ; there may be another login, which cannot be told from a host
    shown = f"{scheme}://***@{tail.partition(';')[0]}" if at else url
    return re.sub(r"(?i)(password\s*=\s*)('[^']*'|[^&\s]*)", r"\1***", shown)


class Declaration(Protocol):
    """A setting that an app declares (executions/declarations.py)."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def default(self) -> Any: ...
    @property
    def at_least(self) -> float | None: ...
    @property
    def at_most(self) -> float | None: ...
    @property
    def choices(self) -> tuple[str, ...]: ...


READERS: dict[str, Callable[..., Any]] = {
    "integer": integer,
    "optional_integer": optional_integer,
    "auto_or_integer": auto_or_integer,
    "seconds": seconds,
    "one_of": one_of,
    "text": text,
    "secret": secret,
    "signing_secrets": signing_secrets,
    "http_url": http_url,
    "networks": networks,
    "counts": counts,
}
#: These have no default that could be told.
WITHOUT_DEFAULT = {"optional_integer", "auto_or_integer", "http_url"}


def declared(one: Declaration, of_service: Mapping[str, Any]) -> Any:
    """Read it by the reader of its kind, within its range. The service may have a default of its own."""
    default = () if one.kind in WITHOUT_DEFAULT else (of_service.get(one.name, one.default),)
    limits = {name: getattr(one, name) for name in ("at_least", "at_most") if getattr(one, name) is not None}
    return READERS[one.kind](one.name, *default, *one.choices, **limits)
