"""Move a file below the namespace: put `harbor_refresh.` in front of each name of a module that moves.

The syntax tree says where such names are. Nothing is taken away and no line is added, so comments stay, and a line
of a traceback has the number that it has in the checkout.

1. Imports: `from tasks.queue import x`, `import tasks.actors`.
2. Texts that hold the dotted name of a module, or of something in one ("tasks.beat:PatientScheduler").
3. The bare name of an app, where it can mean nothing else: AppConfig.name, and what LOADERS get.

Names of messages stay, and so does `dispatch_uid`, which is compared with itself alone. Docstrings are prose. Any
other text that looks like the name of a module of ours ends the build: to guess would break a host where no test
looks.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from distribution.contents import APPS, NAMESPACE
from distribution.errors import Refused
from distribution.modules import Modules

#: Functions whose first argument is the name of a module or an app, or a list of such names.
LOADERS = {
    "autodiscover_tasks",
    "files",
    "find_spec",
    "import_module",
    "import_string",
    "include",
    "is_installed",
    "text",  # executions.sql.text
}
#: Texts that look like the name of a module and are none.
STAY: frozenset[str] = frozenset()

_BEFORE = r"(?<![\w./@-])"
#: The beginning of a name whose rest is put in while the program runs: at the end of a text, or before a place.
_UNFINISHED = re.compile(rf"{_BEFORE}(?:{'|'.join(APPS)})\.(?:\w+\.)*(?P<rest>$|[%{{])")


@dataclass(frozen=True)
class _Text:
    """`is_module`: it can be nothing else. `is_part`: of an f-string. `goes_on`: a value follows there."""

    node: ast.Constant
    value: str
    is_module: bool
    is_part: bool
    goes_on: bool


class Rewriting:
    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._dotted = re.compile(rf"{_BEFORE}(?:{'|'.join(modules.roots)})(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*)?")

    def rewrite(self, source: bytes) -> bytes:
        """Return the text with each name moved. Raises Refused with the lines that are not clear."""
        return _File(self._modules, self._dotted, source).rewritten()


class _File:
    def __init__(self, modules: Modules, dotted: re.Pattern[str], source: bytes) -> None:
        self._modules = modules
        self._dotted = dotted
        self._source = source
        self._tree = ast.parse(source)
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._places: list[int] = []
        self._problems: list[tuple[int, str]] = []

    def rewritten(self) -> bytes:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom):
                self._import_from(node)
            elif isinstance(node, ast.Import):
                self._import(node)
        for text in _texts(self._tree):
            self._text(text)
        if self._problems:
            raise Refused("\n".join(f"{line}: {problem}" for line, problem in sorted(self._problems)))
        rewritten = self._source
        for place in sorted(self._places, reverse=True):
            rewritten = rewritten[:place] + f"{NAMESPACE}.".encode() + rewritten[place:]
        return rewritten

    def _offset(self, line: int, column: int) -> int:
        return self._lines[line - 1] + column

    def _refuse(self, node: ast.stmt | ast.expr | ast.alias, problem: str) -> None:
        self._problems.append((node.lineno, problem))

    def _import_from(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            return
        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
            if name in self._modules.left_out:
                self._refuse(node, f"imports {name}, which the wheel does not carry")
        if self._modules.moves(node.module):
            start = self._offset(node.lineno, node.col_offset)
            before = re.compile(rb"from\s+(?=[\w.])").match(self._source, start)
            if before:
                self._places.append(before.end())
            else:
                self._refuse(node, "an import whose module does not follow `from` on its line")

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            if self._modules.is_left_out(alias.name):
                self._refuse(node, f"imports {alias.name}, which the wheel does not carry")
            if not self._modules.moves(alias.name):
                continue
            self._places.append(self._offset(alias.lineno, alias.col_offset))
            if not alias.asname and self._uses(root):
                self._refuse(node, f"`import {alias.name}` binds {root}, which is used: write `from … import`")

    def _uses(self, name: str) -> bool:
        return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(self._tree))

    def _text(self, text: _Text) -> None:
        node, value = text.node, text.value
        if text.is_module and value in APPS:
            self._move(text, re.compile(rf"\b{value}\b"))
            return
        if _is_unfinished(text):
            self._refuse(node, f"the beginning of a name of a module, which cannot be followed: {value!r}")
        names = self._dotted.findall(value)
        for name in names:
            if self._modules.is_left_out(name):
                self._refuse(node, f"names {name}, which the wheel does not carry")
            elif self._moves(name, text) and not self._modules.exists(name):
                self._refuse(node, f"looks like the name of a module, and is neither one nor in STAY: {name}")
        if any(self._moves(name, text) for name in names):
            if text.is_part:
                self._refuse(node, f"the name of a module in an f-string: {value!r}")
            else:
                self._move(text, self._dotted)

    def _moves(self, name: str, text: _Text) -> bool:
        stays = name in STAY or (name in self._modules.messages and not text.is_module)
        return self._modules.moves(name) and not stays

    def _move(self, text: _Text, pattern: re.Pattern[str]) -> None:
        node = text.node
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        found = {
            at + len(written[: one.start()].encode()): one.group()
            for at, written in self._written
            if start <= at < end
            for one in pattern.finditer(written)
        }
        if list(found.values()) != pattern.findall(text.value):
            self._refuse(node, f"a name of a module that is written in parts: {text.value!r}")
        self._places += [at for at, name in found.items() if self._moves(name, text)]

    @cached_property
    def _written(self) -> list[tuple[int, str]]:
        """Each string as it is written, and its place. A text may be several, with comments between them."""
        return [
            (self._offset(row, len(token.line[:column].encode())), token.string)
            for token in tokenize.tokenize(io.BytesIO(self._source).readline)
            if token.type == tokenize.STRING
            for row, column in [token.start]
        ]


def _is_unfinished(text: _Text) -> bool:
    """Sentences end like this, too. The end of a text counts if a value follows, or nothing stands before."""
    found = _UNFINISHED.search(text.value)
    return found is not None and (bool(found["rest"]) or text.goes_on or (not text.is_part and not found.start()))


def _texts(tree: ast.Module) -> Iterator[_Text]:
    """Every text that a program may read as the name of a module."""
    prose, kept, loaded, parts, before_values = (set[int]() for _ in range(5))
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as value):
                prose.add(id(value))
            case ast.keyword(arg="dispatch_uid", value=ast.Constant() as value):
                kept.add(id(value))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in LOADERS:
                loaded |= {id(one) for argument in arguments[:1] for one in _constants(argument)}
            case ast.ClassDef(bases=bases, body=body) if any("AppConfig" in ast.unparse(base) for base in bases):
                loaded |= {id(value) for value in _names(body)}
            case ast.JoinedStr():
                parts |= {id(one) for one in ast.walk(node)}
                pairs = pairwise(node.values)
                before_values |= {id(one) for one, after in pairs if isinstance(after, ast.FormattedValue)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose | kept:
            yield _Text(node, node.value, id(node) in loaded, id(node) in parts, id(node) in before_values)


def _constants(argument: ast.expr) -> list[ast.expr]:
    return argument.elts if isinstance(argument, ast.List | ast.Tuple | ast.Set) else [argument]


def _names(body: list[ast.stmt]) -> Iterator[ast.expr]:
    for one in body:
        match one:
            case ast.Assign(targets=[ast.Name(id="name")], value=value):
                yield value
