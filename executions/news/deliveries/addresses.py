"""The addresses of webhooks: which may be reached, which are no private ones, or those of an allow-list alone; and
what is shown of them."""

import re
from collections.abc import Sequence
from html import escape
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote, urlsplit

from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import is_text

MAX_URL = 2_000
#: A secret is longer. A shorter path, such as /hook, may be a word of any text.
MIN_MASKED = 8
#: A part of a path or query of so many characters is taken for a secret by itself.
MIN_SECRET = 16
#: Addresses of IPv6 that a translator leads to the IPv4 address in their last 32 bits.
NAT64 = ip_network("64:ff9b::/96")
#: All public addresses of IPv6.
GLOBAL_IPV6 = IPv6Network("2000::/3")
#: Never a receiver's own address: shared space, protocol assignments, relays (6to4, Teredo), local NAT64.
_NEVER = ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "2002::/16", "2001::/23", "64:ff9b:1::/48")
NEVER = tuple(ip_network(one) for one in _NEVER)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def networks() -> tuple[Network, ...]:
    return tuple(ip_network(one, strict=False) for one in intake_settings().deliver_networks)


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """With an allow-list, what is in it; else what is public. An IPv4 address written as IPv6 counts as IPv4."""
    if isinstance(address, IPv6Address):
        if address.scope_id:
            return False
        inner = IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else address.ipv4_mapped
        if inner:
            return is_allowed(inner, allowed)
    if allowed:
        return any(address.version == network.version and address in network for network in allowed)
    if isinstance(address, IPv6Address) and address not in GLOBAL_IPV6:
        return False
    return (
        address.is_global
        and not (address.is_multicast or address.is_reserved or address.is_unspecified)
        and not any(address.version == network.version and address in network for network in NEVER)
    )


def refuse_unusable(url: str) -> None:
    """Check an address when a subscription is made. Names are resolved, and checked again, for each connection."""
    takes = "takes http://host[:port]/path or https://host[:port]/path"
    if not is_text(url, MAX_URL, at_least=1) or not url.isascii() or any(ord(one) <= 32 for one in url):
        raise Refused(f"url {takes}, of at most {MAX_URL:,} characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise Refused(f"url {takes}") from exc
    if parts.scheme not in ("http", "https") or not host or port == 0 or "\\" in url:
        raise Refused(f"url {takes}")
    if parts.username is not None or parts.password is not None:
        raise Refused("url takes no user and no password: a receiver checks the signature instead")
    if parts.fragment:
        raise Refused("url takes no fragment")
    try:
        address = ip_address(host)
    except ValueError:
        return
    if not is_allowed(address, networks()):
        raise Refused(f"url: webhooks may not reach {host}; REFRESH_DELIVER_NETWORKS says which networks they may")


def origin(url: str) -> str:
    """Return the scheme and the host of an address, for those who may not change it: a path or a query may be a
    secret. What is left out stands as `…`, which no address may hold, so it cannot be saved as an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…" if parts.path.strip("/") or parts.query else url


def mask(text: str, url: str) -> str:
    """Replace the path and the query of an address in a text. Receivers that do not know an address often name it
    in their answer, and the answer is shown to more people than the address."""
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}"
    secrets = [one for one in re.split("[/?&=]", target) if len(one) >= MIN_SECRET]
    for secret in (target, parts.path, parts.query, *secrets):
        for written in (secret, unquote(secret), escape(secret)):
            if len(written) >= MIN_MASKED:
                text = text.replace(written, "…")
    return text
