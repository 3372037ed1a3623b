"""How the member `ID:VENDOR` and the token `ID:VENDOR:NODE:TIMESTAMP` are written and read.

Members that cannot be read are separated here, so that a member written by another program stops no worker.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from harbor_refresh.executions.status import MAX_ID, MAX_VENDOR

_MEMBER = re.compile(rf"([0-9]{{1,19}}):([^:]{{1,{MAX_VENDOR}}})", re.DOTALL)
#: Many of them at once, each with a line break behind it. A valid member may still not match.
_PLAIN = re.compile(rf"(?:[1-9][0-9]{{0,17}}:[^:\n\x00]{{1,{MAX_VENDOR}}}\n)*")
_TOKEN = re.compile(r"(.+):([^:]+):(0|[1-9][0-9]{0,18})", re.DOTALL)
#: Before the name of the node in a token whose claim waits for a worker. No host has an @ in its name.
WAITING = "waiting@"


def member(execution_id: int, vendor_type: str) -> str:
    return f"{execution_id}:{vendor_type}"


def execution_id(text: str) -> int:
    return int(text.partition(":")[0])


def readable(raw: bytes) -> str | None:
    """Return the member as text; None if it is not UTF-8, has no vendor, or no id that fits a bigint."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    match = _MEMBER.fullmatch(text)
    if match is None or not 0 < int(match[1]) <= MAX_ID or "\x00" in text:
        return None
    return text


def sorted_out(raws: Sequence[bytes]) -> tuple[Sequence[str], Sequence[bytes]]:
    """Return the readable members as text, and the unreadable ones as they are. Unless one is unusual, all are
    read together, which takes a quarter of the time."""
    with suppress(UnicodeDecodeError):
        text = b"\n".join([*raws, b""]).decode()
        if text.count("\n") == len(raws) and _PLAIN.fullmatch(text):  # one with a line break might read as two
            return text.split("\n")[:-1], ()
    texts = [readable(one) for one in raws]
    taken = [text for text in texts if text is not None]
    return taken, [one for one, text in zip(raws, texts, strict=True) if text is None]


@dataclass(frozen=True)
class Token:
    """`holder` is the node that works on the claim, or `waiting@NODE` while the claim waits for a worker."""

    member: str
    holder: str
    stamp: int

    @property
    def node(self) -> str:
        return node_of(self.holder)

    @property
    def is_waiting(self) -> bool:
        return self.holder.startswith(WAITING)

    @classmethod
    def read(cls, raw: bytes) -> "Token | None":
        try:
            match = _TOKEN.fullmatch(raw.decode())
        except UnicodeDecodeError:
            return None
        if match is None or readable(match[1].encode()) is None:
            return None
        return cls(match[1], match[2], int(match[3]))


def node_of(holder: str) -> str:
    return holder.removeprefix(WAITING)


def ids(members: Iterable[str]) -> list[int]:
    return [execution_id(text) for text in members]
