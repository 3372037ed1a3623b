"""The Lua scripts of the folder `lua`, and the base of the classes that run them.

The header of a script declares what it takes and what it uses:

    -- KEYS[1] queue                         a key of keys.py
    -- ARGV[1] suffix  of the claim          a named argument; `-- ARGV[2..] members` follow the named ones
    -- include _tokens                       the file of that name
    -- from tasks/pacing.py: SMALL, SLOTS    these constants, as locals of the script
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import Redis

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import Refresh
from harbor_refresh.tasks.queue.connection import redis_errors_translated
from harbor_refresh.tasks.queue.keys import Keys

if TYPE_CHECKING:
    from redis.commands.core import Script as Registered

FOLDER = files(__package__) / "lua"

_KEY = re.compile(r"KEYS\[\d+\] (\w+)")
_ARGUMENT = re.compile(r"^-- ARGV\[\d+\] (\w+)  ", re.MULTILINE)
_INCLUDE = re.compile(r"^-- include (\w+)$", re.MULTILINE)
_CONSTANTS = re.compile(r"^-- from tasks/pacing\.py: (.+)$", re.MULTILINE)
_FILE = re.compile(r"([a-z]\w*)-(\d+)\.lua")


class Script(NamedTuple):
    """`args` are the named arguments. A list of items may follow them."""

    keys: tuple[str, ...]
    args: tuple[str, ...]

    def arguments(self, named: dict[str, Any], items: tuple[Any, ...]) -> list[Any]:
        if named.keys() != set(self.args):
            raise TypeError(f"a script takes {self.args}, and got {tuple(named)}")
        return [*(named[name] for name in self.args), *items]


class Scripts(dict[str, Script]):
    """The files `NAME-COUNT.lua`, by name; COUNT is the number of keys."""

    def __init__(self) -> None:
        super().__init__()
        found = (_FILE.fullmatch(path.name) for path in FOLDER.iterdir())
        self._files = {match[1]: f"{match[1]}-{match[2]}" for match in found if match}
        for name, file in self._files.items():
            header = _text(file).partition("\nlocal ")[0]
            self[name] = Script(tuple(_KEY.findall(header)), tuple(_ARGUMENT.findall(header)))

    def source(self, name: str) -> str:
        """Return the text of the script, with what it includes before it."""
        parts = dict(_parts(self._files[name]))
        lists = [names for text in parts.values() for names in _CONSTANTS.findall(text)]
        constants = sorted({name for names in lists for name in names.split(", ")})
        return "".join([*map(_as_local, constants), *parts.values()])


def _parts(file: str) -> Iterator[tuple[str, str]]:
    text = _text(file)
    for included in _INCLUDE.findall(text):
        yield from _parts(included)
    yield file, text


def _as_local(name: str) -> str:
    value = getattr(pacing, name)
    return f"local {name} = '{value}'\n" if isinstance(value, str) else f"local {name} = {value}\n"


@cache
def _text(file: str) -> str:
    return FOLDER.joinpath(f"{file}.lua").read_text(encoding="utf-8")


SCRIPTS = Scripts()


class Verbs:
    """Runs scripts over the keys, by one of two clients: `patient` may send a command twice, `single` does not."""

    def __init__(
        self, conf: Refresh, patient: Redis, single: Redis, edited: Callable[[str], str] = lambda text: text
    ) -> None:
        """`edited` may change the text of each script: a test inserts its clock."""
        self.conf = conf
        self.keys = Keys(conf.key_prefix)
        self._redis = patient
        self._single = single
        self._edited = edited
        self._registered: dict[str, Registered] = {}

    def _run(self, name: str, *items: Any, once: bool = False, **named: Any) -> Any:
        taken = SCRIPTS[name]
        if (script := self._registered.get(name)) is None:
            script = self._registered[name] = self._redis.register_script(self._edited(SCRIPTS.source(name)))
        client = self._single if once else self._redis
        with redis_errors_translated():
            return script(self.keys.named(*taken.keys), taken.arguments(named, items), client)
