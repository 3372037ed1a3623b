"""The Lua scripts and the keys each of them takes, in order. A file's name ends with the number of keys."""

from functools import cache
from importlib.resources import files

KEYS: dict[str, tuple[str, ...]] = {
    "add": ("queue", "wake", "marks", "processing"),
    "announce": ("instances",),
    "beat": ("nodes", "presence"),
    "claim": ("queue", "processing", "attempts", "nodes", "wake", "pause", "stamp", "cursor", "heat", "marks"),
    "count": ("counts",),
    "complete": ("queue", "processing", "attempts", "nodes", "wake", "pause"),
    "give_back": ("queue", "processing", "attempts"),
    "job_acknowledge": ("jobs",),
    "job_begin": ("jobs", "nodes", "presence"),
    "job_check_in": ("jobs",),
    "job_memory": ("jobs", "presence"),
    "job_renew": ("jobs",),
    "job_replace": ("jobs",),
    "job_settle": ("jobs",),
    "job_stop": ("jobs",),
    "job_undo": ("jobs",),
    "look": ("queue", "processing", "attempts", "nodes", "pause", "presence"),
    "take_over": ("processing", "nodes", "stamp"),
    "wake": ("queue", "wake", "pause"),
}


@cache
def source(name: str) -> str:
    """The text of a script, with what it shares with the others before it."""
    parts = ["_shared", *(["_job"] if name.startswith("job_") else []), f"{name}-{len(KEYS[name])}"]
    folder = files(__package__).joinpath("lua")
    return "".join(folder.joinpath(f"{part}.lua").read_text(encoding="utf-8") for part in parts)
