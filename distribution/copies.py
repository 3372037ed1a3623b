"""Copy what the wheel carries, with the names of modules rewritten."""

from pathlib import Path

from distribution.contents import files
from distribution.errors import Refused
from distribution.modules import modules
from distribution.rewriting import Rewriting


def write(root: Path, target: Path) -> None:
    """Write the wheel's files below `target`. Raises Refused with each line that could not be rewritten."""
    carried = files(root)
    rewriting = Rewriting(modules(root, carried))
    problems: list[str] = []
    for one in carried:
        content = one.source.read_bytes()
        if one.is_python:
            try:
                content = rewriting.rewrite(content)
            except Refused as exc:
                problems += [f"{one.source.relative_to(root)}:{line}" for line in str(exc).splitlines()]
        there = target / one.place
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(content)
    if problems:
        raise Refused("the wheel is not built:\n" + "\n".join(problems))
