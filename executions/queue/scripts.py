"""The Lua scripts and the keys each of them takes, in order. A file's name ends with the number of keys."""

from functools import cache
from importlib.resources import files

KEYS: dict[str, tuple[str, ...]] = {
    "add": ("queue", "wake", "marks", "processing"),
    "announce": ("instances",),
    "beat": ("nodes",),
    "claim": ("queue", "processing", "attempts", "nodes", "wake", "pause", "stamp", "cursor", "heat", "marks"),
    "complete": ("queue", "processing", "attempts", "nodes", "wake", "pause"),
    "give_back": ("queue", "processing", "attempts"),
    "look": ("queue", "processing", "attempts", "nodes", "pause"),
    "take_over": ("processing", "nodes", "stamp"),
    "wake": ("queue", "wake", "pause"),
}


@cache
def source(name: str) -> str:
    """The text of a script, with what it shares with the others before it."""
    folder = files(__package__).joinpath("lua")
    script = folder.joinpath(f"{name}-{len(KEYS[name])}.lua").read_text(encoding="utf-8")
    shared = folder.joinpath("_shared.lua").read_text(encoding="utf-8")
    return shared + script
