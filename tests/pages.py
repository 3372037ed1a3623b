"""The pages of the documentation as tests read them: blocks of code, sections, and code within sentences."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FENCED = re.compile(r"^( *)```(\S*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block, without the indentation of the list that it may stand in."""

    language: str
    code: str


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Every block of a page, or of a part of it, in order."""
    return [
        Block(language, re.sub(rf"^{indent}", "", code, flags=re.MULTILINE))
        for indent, language, code in _FENCED.findall(text)
    ]


def codes(text: str, language: str) -> list[str]:
    """The code of every block in this language."""
    return [one.code for one in blocks(text) if one.language == language]


def code(text: str, language: str, beginning: str = "") -> str:
    """The code of the one block in this language that begins so."""
    (found,) = (one for one in codes(text, language) if one.startswith(beginning))
    return found


def lines(text: str, language: str = "sh") -> list[str]:
    """The lines of all blocks in this language."""
    return [line for one in codes(text, language) for line in one.splitlines()]


def section(text: str, title: str) -> str:
    """The text under a heading `## title`, up to the next heading of that level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {title}"
    return found[1]


def outside(text: str) -> str:
    """The text without its blocks."""
    return _FENCED.sub("", text)


def spans(text: str) -> list[str]:
    """The code within sentences and tables, each in one line."""
    return [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", outside(text))]


def files(text: str) -> dict[str, str]:
    """The Python files that a page has: blocks whose first line is a comment with the name of the file."""
    found = (re.match(r"# (\S+\.py)\n", one) for one in codes(text, "python"))
    return {match[1]: match.string[match.end() :] for match in found if match}
