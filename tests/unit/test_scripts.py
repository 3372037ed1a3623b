"""The Lua files: the name says how many keys, the header says which, and nobody writes a key by hand."""

import re
from pathlib import Path

import pytest

from tasks.jobs.records.scripts import COUNTS, RECORDS
from tasks.queue import keys
from tasks.queue.scripts import SCRIPTS
from tasks.strategies.hash import announcements

ROOT = Path(__file__).resolve().parents[2]

ALL = (SCRIPTS, RECORDS, COUNTS, announcements.SCRIPTS)
KEYS = {name: taken for scripts in ALL for name, taken in scripts.keys.items()}
FOLDERS = [Path(ROOT / scripts.package.replace(".", "/")) / "lua" for scripts in (SCRIPTS, RECORDS, ALL[-1])]
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.lua") if not path.name.startswith("_"))
SHARED = [FOLDERS[0] / "_shared.lua", FOLDERS[1] / "_job.lua"]
CATALOGUE = vars(keys.Keys(""))


def header(text: str) -> str:
    lines = text.splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[:end])


def test_there_is_one_file_for_each_script_and_no_other() -> None:
    assert {path.name for path in FILES} == {f"{name}-{len(taken)}.lua" for name, taken in KEYS.items()}


def test_every_key_of_a_script_is_in_the_catalogue_and_every_key_is_used() -> None:
    plain = {"lock"}  # kept by redis-py's own scripts
    assert {key for taken in KEYS.values() for key in taken} == CATALOGUE.keys() - plain
    assert keys.__doc__ is not None
    for name in CATALOGUE.values():
        assert f"| `{name}`" in keys.__doc__


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_header_of_a_script_tells_its_purpose_keys_arguments_and_answer(path: Path) -> None:
    name, count = path.stem.rsplit("-", 1)
    text = path.read_text(encoding="utf-8")
    top = header(text)
    assert re.match(r"-- [A-Z][^\n]+\.", top)
    assert re.findall(r"KEYS\[(\d+)\] (\w+)", top) == [
        (str(number), key) for number, key in enumerate(KEYS[name], start=1)
    ]
    assert int(count) == len(KEYS[name])
    assert "-- returns " in top
    used = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", text[len(top) :])}
    told = {int(number) for number in re.findall(r"ARGV\[(\d+)(?:\.\.)?\]", top)}
    assert used <= told


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_script_uses_each_of_its_keys_once_and_names_none_by_hand(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    body = text[len(header(text)) :]
    count = int(path.stem.rsplit("-", 1)[1])
    assert sorted(map(int, re.findall(r"KEYS\[(\d+)\]", body))) == list(range(1, count + 1))
    assert "cache:" not in text
    for command, first in re.findall(r"redis\.call\('(\w+)',? ?([^,)]*)", body):
        assert "'" not in first, f"{command} of a key written by hand"


def test_the_source_of_a_script_has_what_all_share_before_it() -> None:
    shared, of_jobs = (path.read_text(encoding="utf-8") for path in SHARED)
    assert "KEYS" not in shared + of_jobs
    for scripts in ALL:
        for name in scripts.keys:
            (own,) = (path.read_text(encoding="utf-8") for path in FILES if path.stem.rsplit("-", 1)[0] == name)
            before = shared + of_jobs if name.startswith("job_") else shared
            assert scripts.source(name) == before + own


def test_what_is_shared_is_two_files_and_no_script_has_a_clock_of_its_own() -> None:
    assert {path for folder in FOLDERS for path in folder.glob("_*")} == set(SHARED)
    for path in FILES:
        assert "'TIME'" not in path.read_text(encoding="utf-8")


def test_keys_share_the_prefix_which_may_carry_a_hash_tag() -> None:
    built = keys.Keys("{harbor}:")
    assert (built.queue, built.processing) == ("{harbor}:queue:v2", "{harbor}:processing")
    assert built.named("heat", "stamp") == ["{harbor}:heat", "{harbor}:stamp"]
