"""The modules of the checkout, and what a dotted name leads to."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from distribution.contents import APPS, File, below


@dataclass(frozen=True)
class Modules:
    """`defined` has each module that is carried, by its name in the checkout, with what it defines; `left_out` the
    names of all others."""

    defined: Mapping[str, frozenset[str]]
    left_out: frozenset[str]
    #: The names of our Celery tasks. They look like modules, and stay, because both forms send and take them.
    messages: frozenset[str]

    @cached_property
    def roots(self) -> frozenset[str]:
        return frozenset(name.partition(".")[0] for name in (*self.defined, *self.left_out))

    def moves(self, name: str) -> bool:
        return name.partition(".")[0] in APPS

    def exists(self, name: str) -> bool:
        """Whether it is a carried module, or something that one defines."""
        module, _, attribute = re.sub(":", ".", name).rpartition(".")
        return name in self.defined or attribute in self.defined.get(module, ())

    def is_left_out(self, name: str) -> bool:
        """Whether it is a module that the wheel does not carry, or something in one."""
        module = re.split(r"[.:]\w+$", name)[0]
        return name in self.left_out or ("." in module and module in self.left_out)


def modules(root: Path, carried: Iterable[File]) -> Modules:
    trees = {
        _name_of(one.source.relative_to(root)): ast.parse(one.source.read_bytes())
        for one in carried
        if one.is_python
    }
    packages = (folder for folder in sorted(root.iterdir()) if (folder / "__init__.py").is_file())
    every = {_name_of(path.relative_to(root)) for one in packages for path in below(one) if path.suffix == ".py"}
    return Modules(
        defined={name: frozenset(_defined(tree.body)) for name, tree in trees.items()},
        left_out=frozenset(every - trees.keys()),
        messages=frozenset(name for tree in trees.values() for name in _messages(tree)),
    )


def _name_of(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _defined(statements: Iterable[ast.stmt]) -> Iterator[str]:
    for one in statements:
        match one:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield one.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in one.names)
            case ast.Assign() | ast.AnnAssign():
                yield from (name.id for name in ast.walk(one) if isinstance(name, ast.Name))
            case ast.If() | ast.Try():
                yield from _defined([*one.body, *one.orelse])


def _messages(tree: ast.Module) -> Iterator[str]:
    """The names that `@shared_task(name=…)` gives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "shared_task":
            for keyword in node.keywords:
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
