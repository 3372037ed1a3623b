"""The Lua files: the name gives the number of keys, the header declares them, and no script contains a key."""

import re
from pathlib import Path

import pytest

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.queue import keys
from harbor_refresh.tasks.queue.scripts import SCRIPTS, Script

FOLDER = Path(__file__).resolve().parents[2] / "tasks/queue/lua"
FILES = sorted(path for path in FOLDER.glob("*.lua") if not path.name.startswith("_"))
INCLUDED = sorted(FOLDER.glob("_*.lua"))
CATALOGUE = vars(keys.Keys(""))


def header(text: str) -> str:
    lines = text.splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[:end])


def test_there_is_one_file_for_each_script_and_no_other() -> None:
    assert {path.name for path in FILES} == {f"{name}-{len(script.keys)}.lua" for name, script in SCRIPTS.items()}


def test_every_key_of_a_script_is_in_the_catalogue_and_every_key_is_used() -> None:
    # kept by a script of redis-py, or by plain commands
    plain = {"lock", "legacy_cursor", "legacy_rest"}
    assert {key for script in SCRIPTS.values() for key in script.keys} == CATALOGUE.keys() - plain
    assert keys.KINDS.keys() == CATALOGUE.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_header_of_a_script_states_its_purpose_keys_arguments_and_answer(path: Path) -> None:
    name, count = path.stem.rsplit("-", 1)
    text = path.read_text(encoding="utf-8")
    top = header(text)
    assert re.match(r"-- [A-Z][^\n]+\.", top)
    assert re.findall(r"KEYS\[(\d+)\] (\w+)", top) == [
        (str(number), key) for number, key in enumerate(SCRIPTS[name].keys, start=1)
    ]
    assert int(count) == len(SCRIPTS[name].keys)
    assert "-- returns " in top
    used = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", text[len(top) :])}
    told = [int(number) for number in re.findall(r"ARGV\[(\d+)(?:\.\.)?\]", top)]
    assert used <= set(told)
    assert told == list(range(1, len(told) + 1))
    lists = re.findall(r"ARGV\[\d+\.\.\]", top)
    assert len(told) - len(SCRIPTS[name].args) == len(lists), "two blanks after a name"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_script_uses_each_of_its_keys_once_and_names_none_by_hand(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    body = text[len(header(text)) :]
    count = int(path.stem.rsplit("-", 1)[1])
    assert sorted(map(int, re.findall(r"KEYS\[(\d+)\]", body))) == list(range(1, count + 1))
    assert "cache:" not in text
    for command, first in re.findall(r"redis\.call\('(\w+)',? ?([^,)]*)", body):
        assert "'" not in first, f"{command} of a key written by hand"


def test_a_script_refuses_arguments_that_it_does_not_take_or_misses() -> None:
    script = Script((), ("suffix", "limit"))
    assert script.arguments({"limit": 1, "suffix": "n1:7"}, ("1:A", "2:B")) == ["n1:7", 1, "1:A", "2:B"]
    for named in ({"suffix": "n1:7"}, {"suffix": "n1:7", "limit": 1, "node": "n1"}):
        with pytest.raises(TypeError, match="a script takes"):
            script.arguments(named, ())


@pytest.mark.parametrize("path", FILES + INCLUDED, ids=lambda path: path.name)
def test_a_script_names_each_constant_and_each_file_it_uses_and_no_other(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    top = header(text)
    body = re.sub(r"--.*", "", text[len(top) :])
    constants = {
        name for line in re.findall(r"^-- from tasks/pacing\.py: (.+)$", top, re.M) for name in line.split(", ")
    }
    assert constants == {name for name in vars(pacing) if name.isupper() and re.search(rf"\b{name}\b", body)}
    defined = {one: functions(one) for one in INCLUDED if one != path}
    used = {one.stem for one, names in defined.items() if any(re.search(rf"\b{name}\(", body) for name in names)}
    assert used <= reached(path)
    assert set(included(path)) <= used, "an include that is not used"


def functions(path: Path) -> list[str]:
    return re.findall(r"^local function (\w+)", path.read_text(encoding="utf-8"), re.M)


def included(path: Path) -> list[str]:
    return re.findall(r"^-- include (\w+)$", path.read_text(encoding="utf-8"), re.M)


def reached(path: Path) -> set[str]:
    direct = [one for one in INCLUDED if one.stem in included(path)]
    return {one.stem for one in direct}.union(*map(reached, direct))


def test_no_script_has_a_clock_of_its_own() -> None:
    assert [path.name for path in FILES + INCLUDED if "'TIME'" in path.read_text(encoding="utf-8")] == [
        "_clock.lua"
    ]
