"""The Lua scripts of a package, and the keys that each of them takes, in order."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


class Scripts:
    """The files `NAME-COUNT.lua` in the folder `lua` of a package; COUNT is the number of keys.

    `before` names the files that are prepended to each of them, as package and file.
    """

    def __init__(self, package: str, keys: Mapping[str, tuple[str, ...]], *before: tuple[str, str]) -> None:
        self.package = package
        self.keys = keys
        self.before = before

    def source(self, name: str) -> str:
        own = (self.package, f"{name}-{len(self.keys[name])}")
        return "".join(_text(package, file) for package, file in (*self.before, own))


SHARED = (__package__, "_shared")

SCRIPTS = Scripts(
    __package__,
    {
        "add": ("queue", "wake", "marks", "processing"),
        "beat": ("nodes", "presence"),
        "claim": ("queue", "processing", "attempts", "nodes", "wake", "pause", "stamp", "cursor", "heat", "marks"),
        "complete": ("queue", "processing", "attempts", "nodes", "wake", "pause"),
        "give_back": ("queue", "processing", "attempts"),
        "look": ("queue", "processing", "attempts", "nodes", "pause", "presence"),
        "take_over": ("processing", "nodes", "stamp"),
        "wake": ("queue", "wake", "pause"),
    },
    SHARED,
)


@cache
def _text(package: str, file: str) -> str:
    return files(package).joinpath("lua", f"{file}.lua").read_text(encoding="utf-8")
