"""The Lua files: the name gives the number of keys, the header declares them, and no script contains a key."""

import re
from pathlib import Path

import pytest

from harbor_refresh.tasks.queue import keys
from harbor_refresh.tasks.queue.scripts import SCRIPTS

FOLDER = Path(__file__).resolve().parents[2] / "tasks/queue/lua"
FILES = sorted(path for path in FOLDER.glob("*.lua") if not path.name.startswith("_"))
INCLUDED = sorted(FOLDER.glob("_*.lua"))
CATALOGUE = vars(keys.Keys(""))


def header(text: str) -> str:
    lines = text.splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[:end])


def test_every_key_of_a_script_is_in_the_catalogue_and_every_key_is_used() -> None:
    # kept by a script of redis-py, or by plain commands
    plain = {"lock", "legacy_cursor", "legacy_rest"}
    assert {key for script in SCRIPTS.values() for key in script.keys} == CATALOGUE.keys() - plain
    assert keys.KINDS.keys() == CATALOGUE.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_header_of_a_script_declares_its_keys_and_arguments_in_order(path: Path) -> None:
    name, count = path.stem.rsplit("-", 1)
    top = header(text := path.read_text(encoding="utf-8"))
    keys_of_script = [(str(number), key) for number, key in enumerate(SCRIPTS[name].keys, start=1)]
    assert re.findall(r"KEYS\[(\d+)\] (\w+)", top) == keys_of_script
    assert len(keys_of_script) == int(count)
    declared = [int(number) for number in re.findall(r"-- ARGV\[(\d+)(?:\.\.)?\]", top)]
    assert declared == list(range(1, len(declared) + 1))
    assert {int(number) for number in re.findall(r"ARGV\[(\d+)\]", text[len(top) :])} <= set(declared)
    lists = re.findall(r"ARGV\[\d+\.\.\]", top)
    assert len(SCRIPTS[name].args) == len(declared) - len(lists), "two blanks after a name"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_script_uses_each_of_its_keys_once_and_names_none_by_hand(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    body = text[len(header(text)) :]
    count = int(path.stem.rsplit("-", 1)[1])
    assert sorted(map(int, re.findall(r"KEYS\[(\d+)\]", body))) == list(range(1, count + 1))
    assert "cache:" not in text
    for command, first in re.findall(r"redis\.call\('(\w+)',? ?([^,)]*)", body):
        assert "'" not in first, f"{command} of a key written by hand"


def test_no_script_has_a_clock_of_its_own() -> None:
    assert [path.name for path in FILES + INCLUDED if "'TIME'" in path.read_text(encoding="utf-8")] == [
        "_clock.lua"
    ]
