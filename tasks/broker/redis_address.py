"""The address of a Redis, as an environment variable holds it.

| address                                                        | the server                           |
| -------------------------------------------------------------- | ------------------------------------ |
| `redis://[user:password@]host[:port][/number]`                 | one                                  |
| `redis+sentinel://[user:password@]host[:port],…/NAME[/number]` | the primary that Sentinels call NAME |

`rediss` in the place of `redis` means TLS, to the Sentinels too. Options follow after `?` (OPTIONS). A Harbor's
own address works: the options of its client that mean nothing here are accepted and dropped. An unknown option is
refused, because it may be a misspelled one that protects something.
"""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

#: Options of the pool and the retries of Harbor's client. Ours has its own.
DROPPED = {
    *("idle_timeout_seconds", "idle_timeout", "idle_check_frequency", "min_idle_conns", "max_conn_age"),
    *("pool_fifo", "pool_size", "pool_timeout", "max_retries", "min_retry_backoff", "max_retry_backoff"),
    *("dial_timeout", "read_timeout", "write_timeout"),
}
#: The options that name a file.
FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
#: What `ssl_cert_reqs` takes: whether the server must have a certificate that the client trusts.
TRUST = ("required", "optional", "none")
SENTINEL = "redis+sentinel"
SCHEMES = ("redis", SENTINEL)
TLS = (*FILES, "ssl_cert_reqs", "ssl_check_hostname")
OF_SENTINEL = ("sentinel_username", "sentinel_password")
OPTIONS = ("db", *TLS, *OF_SENTINEL)

TAKES = (
    "redis://[:password@]host:port/number or redis+sentinel://[:password@]host:port,host:port/NAME/number, "
    "or one of these with rediss for TLS"
)
_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>\d+))?")


class BadAddress(ValueError):
    """What cannot be used of an address; without its password."""


class Place(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Address:
    """`places`: the server or the Sentinels. `primary`: its name at the Sentinels; empty without these. `tls`:
    None for no TLS, else the options of redis-py's connection. `of_sentinels`: how to connect to these."""

    places: tuple[Place, ...]
    number: int = 0
    primary: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: dict[str, Any] | None = None
    of_sentinels: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def login(self) -> dict[str, str | None]:
        return {"username": self.username, "password": self.password}

    @property
    def secrets(self) -> Iterator[str]:
        yield from filter(None, (self.password, self.of_sentinels.get("password")))


@cache
def read_address(url: str) -> Address:
    """Raises BadAddress."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a [ without a ]; its text may hold the password
        raise BadAddress("a host that cannot be read") from None
    scheme = parts.scheme.replace("rediss", "redis", 1)
    if scheme not in SCHEMES:
        raise BadAddress(f"the scheme {parts.scheme}" if scheme else "no scheme")
    has_sentinels = scheme == SENTINEL
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    given = read_options(parts.query, OPTIONS, DROPPED)
    tls = read_tls(given, parts.scheme.partition("+")[0], "rediss")
    if not has_sentinels and (useless := sorted(given.keys() & set(OF_SENTINEL))):
        raise BadAddress(f"{useless[0]} without Sentinel")
    names = [unquote(word) for word in parts.path.split("/") if word]
    primary = names.pop(0) if has_sentinels and names else ""
    if has_sentinels and not primary:
        raise BadAddress("no name of the primary")
    places = tuple(read_place(word, 26379 if has_sentinels else 6379) for word in hosts.split(","))
    if not has_sentinels and len(places) > 1:
        raise BadAddress("several hosts without +sentinel")
    return Address(
        places=places,
        number=_number(names, given.get("db")),
        primary=primary,
        username=unquote(username) or None,
        password=unquote(password) or None,
        tls=tls,
        of_sentinels=_of_sentinels(given, tls) if has_sentinels else {},
    )


def read_place(word: str, standard: int) -> Place:
    """Read `host[:port]`; `standard` is the port if it names none."""
    match = _HOST.fullmatch(word.strip())
    port = int(match["port"] or standard) if match else 0
    if not match or not 0 < port < 65536:
        raise BadAddress("a host that cannot be read")
    return Place(match["v6"] or unquote(match["name"]), port)


def _number(names: list[str], option: str | None) -> int:
    """Return the number of the database: the last part of the path, or else the option `db`."""
    if len(names) > 1:
        raise BadAddress("a path that is too long")
    text = names[0] if names else option or "0"
    if not (text.isascii() and text.isdecimal()):
        raise BadAddress("a database that is no number")
    return int(text)


def read_options(query: str, known: Collection[str], dropped: Collection[str] = ()) -> dict[str, str]:
    given = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(given.keys() - set(dropped) - set(known)):
        # a password with a question mark ends up here
        is_a_name = re.fullmatch("[a-z_]+", unknown[0]) and "@" not in query
        raise BadAddress(f"the unknown option {unknown[0]}" if is_a_name else "an option that cannot be read")
    return {name: value for name, value in given.items() if name in known}


def read_tls(given: dict[str, str], scheme: str, with_tls: str) -> dict[str, Any] | None:
    """Return the options of redis-py's connection; None unless the scheme is the one with TLS. The server's
    certificate is checked if nothing else is said."""
    if scheme != with_tls:
        if useless := sorted(given.keys() & set(TLS)):
            raise BadAddress(f"{useless[0]} without TLS: begin with {with_tls}")
        return None
    options: dict[str, Any] = {}
    for name in FILES:
        if path := given.get(name):
            if not os.access(path, os.R_OK):
                raise BadAddress(f"{name} names no file that can be read")
            options[name] = path
    trust = given.get("ssl_cert_reqs", "required").lower().removeprefix("cert_")
    checks_name = given.get("ssl_check_hostname", "true").lower()
    if trust not in TRUST:
        raise BadAddress(f"ssl_cert_reqs takes {', '.join(TRUST)}")
    if checks_name not in ("true", "false"):
        raise BadAddress("ssl_check_hostname takes true or false")
    return {**options, "ssl_cert_reqs": trust, "ssl_check_hostname": checks_name == "true" and trust != "none"}


def _of_sentinels(given: dict[str, str], tls: dict[str, Any] | None) -> dict[str, Any]:
    login = {name.removeprefix("sentinel_"): given[name] for name in OF_SENTINEL if given.get(name)}
    return {**login, **({"ssl": True, **tls} if tls is not None else {})}


class OfCelery(NamedTuple):
    """What Celery's settings need for a broker: its form of the address, transport options and TLS."""

    url: str
    options: dict[str, Any]
    tls: dict[str, Any] | None


def for_celery(url: str) -> OfCelery:
    """Translate an address for Celery. Each Sentinel gets the login and the database, because kombu reads only the
    part that it has turned to."""
    address = read_address(url)
    user, password = (quote(text or "", safe="") for text in (address.username, address.password))
    login = f"{user}:{password}@" if user or password else ""
    if not address.primary:
        scheme = "redis" if address.tls is None else "rediss"
        return OfCelery(f"{scheme}://{login}{address.places[0]}/{address.number}", {}, address.tls)
    places = ";".join(f"sentinel://{login}{place}/{address.number}" for place in address.places)
    return OfCelery(places, {"master_name": address.primary, "sentinel_kwargs": address.of_sentinels}, address.tls)
