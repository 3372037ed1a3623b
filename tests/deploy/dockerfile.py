"""What the Dockerfile says, as values: its stages, and what each copies from the build context."""

import json
import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tests.pages import ROOT

DOCKERFILE = ROOT / "deploy/image/Dockerfile"
IGNORE = ROOT / ".dockerignore"


@dataclass(frozen=True)
class Instruction:
    """One instruction without its comments; lines that a backslash joins are one."""

    word: str
    rest: str

    @property
    def arguments(self) -> list[str]:
        """Its words, or the strings of its exec form."""
        return json.loads(self.rest) if self.is_exec_form else shlex.split(self.rest)

    @property
    def is_exec_form(self) -> bool:
        return self.rest.startswith("[")

    @property
    def flags(self) -> dict[str, str]:
        found = [word for word in self.rest.split() if word.startswith("--")]
        return dict(word.removeprefix("--").partition("=")[::2] for word in found)

    @property
    def pairs(self) -> dict[str, str]:
        """Of ENV, ARG and LABEL."""
        return dict(word.partition("=")[::2] for word in shlex.split(self.rest))


@dataclass
class Stage:
    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def every(self, word: str) -> list[Instruction]:
        return [one for one in self.instructions if one.word == word]

    def only(self, word: str) -> Instruction:
        (one,) = self.every(word)
        return one

    @property
    def sources(self) -> list[tuple[str, str]]:
        """What is copied from the build context, and where to."""
        copies = [one.arguments for one in self.every("COPY") if "from" not in one.flags]
        return [(source, target) for *sources, target in copies for source in sources]


def instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [Instruction(word.upper(), rest.strip()) for word, _, rest in found]


def stages(text: str) -> list[Stage]:
    found: list[Stage] = []
    for one in instructions(text):
        if one.word == "FROM":
            base, _, name = one.rest.partition(" AS ")
            found.append(Stage(base.strip(), name.strip()))
        else:
            found[-1].instructions.append(one)
    return found


def is_sent(path: str, ignored: str) -> bool:
    """Whether the builder gets this file of the context: the last line of .dockerignore that matches it, or a
    folder that it is in, decides."""
    parts = path.split("/")
    folders = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    sent = True
    for line in ignored.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        wanted = pattern.startswith("!")
        if any(_matches(folder, pattern.removeprefix("!")) for folder in folders):
            sent = wanted
    return sent


def _matches(path: str, pattern: str) -> bool:
    """A star matches no slash, and `**/` any number of folders."""
    if pattern.startswith("**/"):
        return fnmatchcase(path.rsplit("/", 1)[-1], pattern.removeprefix("**/"))
    wanted, parts = pattern.split("/"), path.split("/")
    return len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted))
