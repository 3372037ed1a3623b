"""The Lua scripts of the folder `lua`. Each may call the functions of the files `_NAME.lua`, which come before it.

The header of a script declares what it takes and what it uses:

    -- KEYS[1] queue                         a key of keys.py
    -- ARGV[1] suffix  of the claim          a named argument; `-- ARGV[2..] members` follow the named ones
    -- from tasks/conf/pacing.py: SMALL, SLOTS    these constants, as locals of the script
"""

import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from harbor_refresh.tasks.conf import pacing

FOLDER = files(__package__) / "lua"
#: In this order, because the others use the clock.
COMMON = ("_clock", "_nodes", "_ticks", "_tokens", "_waiting")

_KEY = re.compile(r"KEYS\[\d+\] (\w+)")
_ARGUMENT = re.compile(r"^-- ARGV\[\d+\] (\w+)  ", re.MULTILINE)
_CONSTANTS = re.compile(r"^-- from tasks/conf/pacing\.py: (.+)$", re.MULTILINE)
_FILE = re.compile(r"([a-z]\w*)-\d+\.lua")


class Script(NamedTuple):
    """`args` are the named arguments. A list of items may follow them."""

    keys: tuple[str, ...]
    args: tuple[str, ...]
    file: str = ""

    def arguments(self, named: dict[str, Any], items: tuple[Any, ...]) -> list[Any]:
        if named.keys() != set(self.args):
            raise TypeError(f"a script takes {self.args}, and got {tuple(named)}")
        return [*(named[name] for name in self.args), *items]

    def source(self) -> str:
        """Return the text of the script, with all that it may use before it."""
        parts = [*map(_text, COMMON), _text(self.file)]
        lists = [names for text in parts for names in _CONSTANTS.findall(text)]
        constants = sorted({name for names in lists for name in names.split(", ")})
        return "".join([*map(_as_local, constants), *parts])


def _as_local(name: str) -> str:
    value = getattr(pacing, name)
    return f"local {name} = '{value}'\n" if isinstance(value, str) else f"local {name} = {value}\n"


@cache
def _text(file: str) -> str:
    return FOLDER.joinpath(f"{file}.lua").read_text(encoding="utf-8")


def _read(file: str) -> Script:
    header = _text(file).partition("\nlocal ")[0]
    return Script(tuple(_KEY.findall(header)), tuple(_ARGUMENT.findall(header)), file)


#: The files `NAME-COUNT.lua`, by name; COUNT is the number of keys.
SCRIPTS = {
    found[1]: _read(found[0].removesuffix(".lua"))
    for path in FOLDER.iterdir()
    if (found := _FILE.fullmatch(path.name))  # an editor may have left a copy
}
