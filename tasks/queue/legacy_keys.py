"""The names of the marks that Harbor itself writes.

| Harbor          | key                                                                    | type   |
| --------------- | ---------------------------------------------------------------------- | ------ |
| 2.8 to 2.15     | `cache:execution:id:ID:vendor:VENDOR:status_outdate`, one an execution | string |
| the same, seeds | `execution:id:ID:vendor:VENDOR:status_outdate`                         | string |
| its main branch | `execution:status_outdate`, of `ID:VENDOR`                             | set    |

The keys of the first two have no expiry and no index.
"""

import re

from harbor_refresh.tasks.queue import members as names

#: For SCAN.
PATTERN = "*execution:id:*:vendor:*:status_outdate"
#: What Harbor writes, with the id and the vendor. Redis's Lua fills it in as well.
FORM = "cache:execution:id:%s:vendor:%s:status_outdate"
SEED_FORM = FORM.removeprefix("cache:")
_KEY = re.compile(rb"(?:cache:)?execution:id:([^:]+):vendor:([^:]+):status_outdate", re.DOTALL)
#: Both forms as patterns of Lua, with the id and the vendor.
READERS = tuple(f"^{form % ('(%d+)', '([^:%z]+)')}$" for form in (FORM, SEED_FORM))


def keys_of(member: str) -> tuple[str, str]:
    """Return the keys of a member: the one that Harbor writes, and the one of the seeds."""
    number, _, vendor = member.partition(":")
    return FORM % (number, vendor), SEED_FORM % (number, vendor)


def readable(key: bytes) -> str | None:
    """Return the member `ID:VENDOR` of a key; None if it cannot be read."""
    match = _KEY.fullmatch(key)
    return names.readable(match[1] + b":" + match[2]) if match else None
