"""The Lua scripts of a package, with the keys and the arguments that each of them takes, in order.

A script names what it uses in its header:

    -- include _tokens                       the file of that name; it may belong to this package
    -- from tasks/pacing.py: SMALL, SLOTS    these constants, as locals of the script
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from harbor_refresh.tasks import pacing

_INCLUDE = re.compile(r"^-- include (\w+)$", re.MULTILINE)
#: Files of this package that the scripts of other packages include.
_SHARED = ("_clock", "_nodes", "_tokens")
_CONSTANTS = re.compile(r"^-- from tasks/pacing\.py: (.+)$", re.MULTILINE)


class Script(NamedTuple):
    """`args` are the named arguments. A list of items may follow them, see `arguments`."""

    keys: tuple[str, ...]
    args: tuple[str, ...] = ()

    def arguments(self, named: Mapping[str, Any], items: tuple[Any, ...]) -> list[Any]:
        if named.keys() != set(self.args):
            raise TypeError(f"a script takes {self.args}, and got {tuple(named)}")
        return [*(named[name] for name in self.args), *items]


class Scripts(dict[str, Script]):
    """The files `NAME-COUNT.lua` in the folder `lua` of a package, by name; COUNT is the number of keys."""

    def __init__(self, package: str, scripts: Mapping[str, Script]) -> None:
        super().__init__(scripts)
        self.package = package

    def source(self, name: str) -> str:
        """Return the text of the script, with what it includes before it."""
        parts: dict[str, str] = {}
        self._collect(f"{name}-{len(self[name].keys)}", parts)
        constants = sorted({name for text in parts.values() for name in _names(text)})
        return "".join([*map(_as_local, constants), *parts.values()])

    def _collect(self, file: str, parts: dict[str, str]) -> None:
        text = _text(__package__ if file in _SHARED else self.package, file)
        for included in _INCLUDE.findall(text):
            if included not in parts:
                self._collect(included, parts)
        parts[file] = text


def _names(text: str) -> Iterator[str]:
    for names in _CONSTANTS.findall(text):
        yield from names.split(", ")


def _as_local(name: str) -> str:
    value = getattr(pacing, name)
    return f"local {name} = '{value}'\n" if isinstance(value, str) else f"local {name} = {value}\n"


@cache
def _text(package: str, file: str) -> str:
    return files(package).joinpath("lua", f"{file}.lua").read_text(encoding="utf-8")


SCRIPTS = Scripts(
    __package__,
    {
        "mark": Script(("queue", "wake", "marks", "processing", "waiting")),
        "wake": Script(("queue", "wake", "pause"), ("ignore_pending_wake", "ignore_empty_queue")),
        "claim": Script(
            (
                *("queue", "processing", "attempts", "nodes", "wake", "pause", "stamp", "cursor", "heat", "marks"),
                *("waiting", "ticked"),
            ),
            ("node", "holder", "most", "worth", "share", "ttl", "longest_rest"),
        ),
        "claim_more": Script(
            ("queue", "processing", "attempts", "cursor", "waiting"), ("suffix", "most", "limit", "cursor")
        ),
        "take_over": Script(("processing", "nodes", "stamp"), ("suffix", "node", "new_stamp")),
        "complete": Script(
            ("queue", "processing", "attempts", "nodes", "wake", "pause"), ("suffix", "share", "ttl", "is_last")
        ),
        "release": Script(("queue", "processing", "attempts", "waiting"), ("suffix", "limit")),
        "heartbeat": Script(("nodes", "presence", "left", "dead"), ("node", "ttl")),
        "leave": Script(("left",), ("node",)),
        "begin_search": Script(("dead", "search"), ("ttl", "pause", "longest", "within")),
        "end_search": Script(("search",), ("death",)),
        "take_queues": Script(("queues",)),
        "stats": Script(("queue", "processing", "attempts", "nodes", "pause", "presence"), ("ttl",)),
        "look": Script(
            (
                *("queue", "processing", "attempts", "nodes", "pause", "waiting", "ticked", "stamp"),
                *("left", "dead", "jobs", "presence"),
            ),
            ("ttl",),
        ),
    },
)
