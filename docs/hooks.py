"""The hook of mkdocs: it replaces each marker `<!-- table: NAME -->` of a page by Markdown made from the code, and
prepares the pages, which are written for GitHub, for mkdocs. Tests call `filled()` without mkdocs."""

import argparse
import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from posixpath import normpath, relpath
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings.test")

import django

django.setup()

from harbor_refresh import client
from harbor_refresh.executions.api.answers import MAX_ITEMS, MAX_KEY, PageIn
from harbor_refresh.executions.api.schemas import MAX_REPORTS, MAX_TASKS
from harbor_refresh.executions.conf import DECLARED as OF_EXECUTIONS
from harbor_refresh.executions.conf.declarations import Declared, takes
from harbor_refresh.executions.queries.filters import MAX_ATTRIBUTES
from harbor_refresh.executions.status import CODES, is_final
from harbor_refresh.executions.text import MAX_DEPTH, MAX_JSON
from harbor_refresh.management.commands import alive, attach, doctor  # attach registers its checks
from harbor_refresh.tasks.broker.connecting import TAKES as BROKER_TAKES
from harbor_refresh.tasks.broker.redis_address import TAKES as REDIS_TAKES
from harbor_refresh.tasks.checks.registry import GROUPS as CHECKED
from harbor_refresh.tasks.checks.registry import REGISTERED
from harbor_refresh.tasks.conf import DECLARED as OF_TASKS
from harbor_refresh.tasks.management.commands import harbor
from harbor_refresh.tasks.management.verbs.executions import FILTER
from harbor_refresh.tasks.queue.keys import CATALOGUE, queue_key
from harbor_refresh.web.api import ERRORS, GROUPS, MAX_MARKS, api
from harbor_refresh.web.metrics import METRICS
from settings import base, env

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    Parser = argparse.ArgumentParser

DECLARED = (*OF_EXECUTIONS.values(), *OF_TASKS.values())
#: What each reader of settings/env.py takes.
READERS = {
    "text": "text",
    "words": "words separated by commas",
    "secret": "a secret",
    "database": env.DATABASE_TAKES,
    "redis_url": REDIS_TAKES,
    "broker_url": BROKER_TAKES,
}
#: What a request to the API may have at most, and the status of the answer to more.
LIMITS = (
    ("address with its query, and headers", "262,144 bytes", "431"),
    ("body", f"{base.DATA_UPLOAD_MAX_MEMORY_SIZE // 1024**2} MiB", "413"),
    ("commas, `[` and `{` in a body, text included", f"{MAX_MARKS:,}", "413"),
    ("nested levels of a body", f"{MAX_DEPTH}", "400"),
    ("`extra_attrs` of a row", f"{MAX_JSON:,} bytes", "400"),
    ("tasks of a request", f"{MAX_TASKS:,}", "422"),
    ("reports of a request", f"{MAX_REPORTS:,}", "422"),
    ("items of a page", f"{MAX_ITEMS:,} (default: {PageIn.model_fields['limit'].default})", "422"),
    ("`attribute` in a list", f"{MAX_ATTRIBUTES}", "422"),
    ("`Idempotency-Key`", f"{MAX_KEY} visible ASCII characters", "422"),
    (
        "requests of a token to a web process in a minute",
        f"{OF_EXECUTIONS['requests_per_minute'].default:,} by default",
        "429",
    ),
)
#: The options that every command has.
COMMON = {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color", "force_color", "json"}


def table(titles: str, rows: Iterable[Iterable[object]]) -> str:
    """Write a table. `titles`: those of its columns, with | between them."""
    lines = [" | ".join(" ".join(str(cell).split()) for cell in row) for row in rows]
    columns = titles.split("|")
    return "\n".join(f"| {line} |" for line in (" | ".join(columns), " | ".join(["---"] * len(columns)), *lines))


def code(text: object) -> str:
    return "" if text in (None, "", ()) else f"`{text}`"


def sentence(text: str | None) -> str:
    """Write a text that begins small, such as the help of an option, as a sentence."""
    text = " ".join((text or "").split())
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") or not text else ".")


def comment_above(source: str, line: int) -> str:
    """Return the comment `#:` right above this line."""
    found: list[str] = []
    for text in reversed(source.splitlines()[: line - 1]):
        if not text.strip().startswith("#:"):
            break
        found.insert(0, text.strip().removeprefix("#:").strip())
    return " ".join(found)


def setting(name: str, meaning: str, takes: str, default: Any) -> tuple[str, str]:
    if isinstance(default, dict):
        default = ",".join(f"{vendor}:{number}" for vendor, number in default.items())
    known = f" Default: {code(default)}." if code(default) else ""
    return code(name), f"{meaning}<br>Takes {takes}.{known}"


def keys_of_project() -> str:
    own = (one for one in DECLARED if not one.of_service)
    rows = (setting(one.key, one.meaning, takes(one, as_text=False), one.default) for one in own)
    return table("key|meaning", rows)


def variables_of_service() -> str:
    given = base.DEFAULTS_OF_SERVICE
    rows = (
        setting(one.name, one.meaning, takes(one, as_text=True), given.get(one.name, one.default))
        for one in DECLARED
    )
    return table("variable|meaning", [*_read_by_settings(), *rows])


def _read_by_settings() -> Iterator[tuple[str, str]]:
    """Yield the variables that settings/*.py reads itself. Their meaning is the comment `#:` above the call."""
    for name in ("base", "production"):
        source = (ROOT / f"settings/{name}.py").read_text(encoding="utf-8")
        calls = (one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call))
        for call in sorted(calls, key=lambda one: one.lineno):
            reader, meaning = ast.unparse(call.func), comment_above(source, call.lineno)
            if not meaning or not reader.startswith("env."):
                continue
            first, *others = (_value(one) for one in call.args)
            more = {str(one.arg): _value(one.value) for one in call.keywords}
            if reader == "env.value":
                one = Declared(first, others[0], others[1], meaning, **more)
                yield setting(first, meaning, takes(one, as_text=True), one.default)
            else:
                default = more.get("default", "".join(others[:1]))
                yield setting(first, meaning, READERS[reader.removeprefix("env.")], default)


def _value(node: ast.expr) -> Any:
    """Return the choices that a name stands for; else the name itself, since its value is that of this machine."""
    if isinstance(node, ast.Name):
        found = getattr(base, node.id)
        return found if isinstance(found, tuple) else node.id
    return ast.literal_eval(node)


def commands() -> str:
    modules = {"harbor": harbor, "attach": attach, "doctor": doctor, "alive": alive}
    parsers = {f"manage.py {name}": one.Command().create_parser("", name) for name, one in modules.items()}
    return "\n\n".join(part for name, parser in parsers.items() for part in _command(parser, name))


def _command(parser: "Parser", name: str, text: str | None = None) -> Iterator[str]:
    verbs = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    for one in verbs:
        helps = {choice.dest: choice.help for choice in one._choices_actions}
        for verb, its in one.choices.items():
            yield from _command(its, f"{name} {verb}", helps[verb])
    if verbs:
        return
    of_filter = {one.dest for one in _filter()}
    takes_filter = of_filter <= {one.dest for one in parser._actions}
    own = [one for one in parser._actions if one.dest not in COMMON | (of_filter if takes_filter else set())]
    words = [_shown(one) if _is_demanded(one) else f"[{_shown(one)}]" for one in own]
    usage = " ".join([name, *["FILTER"] * takes_filter, *words])
    title, text = name.removeprefix("manage.py "), sentence(text or parser.description)
    yield f"### {title}\n\n{text}\n\n```text\n{usage}\n```"
    if own:
        yield _options(own)


def _filter() -> Sequence[argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False)
    for add_to in FILTER:
        add_to(parser)
    return parser._actions


def _options(actions: Iterable[argparse.Action]) -> str:
    return table("option|meaning", ((code(_shown(one)), sentence(one.help)) for one in actions))


def _is_demanded(one: argparse.Action) -> bool:
    return not one.option_strings and one.nargs not in ("?", "*")


def _shown(one: argparse.Action) -> str:
    value = str(one.metavar or "") or "|".join(map(str, one.choices or ())) or one.dest.upper()
    value = "" if one.nargs == 0 else f"{value} …" if one.nargs in ("*", "+") else value
    return " ".join([*one.option_strings[-1:], value]).strip()


def operations() -> str:
    """Each operation of the API by its group, and each schema, with links between them."""
    described = api.get_openapi_schema(path_prefix="/api/v1/")
    parts = []
    for group in GROUPS:
        parts.append(f"## {group}")
        for path, methods in described["paths"].items():
            for method, one in methods.items():
                if group in one["tags"]:
                    parts += _operation(f"{method.upper()} {path}", one)
    parts.append("## Schemas")
    for name, schema in described["components"]["schemas"].items():
        fields = _fields(schema.get("properties", {}), schema.get("required", ()))
        parts.append(f"### {name}\n\n{schema.get('description', '')}\n\n{fields}")
    return "\n\n".join(parts)


def _operation(name: str, one: dict[str, Any]) -> Iterator[str]:
    yield f"### {one['summary']}\n\n`{name}`\n\n{one.get('description', '')}"
    found = [its for its in one.get("parameters", ()) if its["in"] != "path"]
    yield _fields({f"{its['name']} ({its['in']})": its["schema"] | its for its in found}, ())
    for schema in _schemas(one.get("requestBody", {})):
        yield f"Body: {schema}."
    answers, errors = [], []
    for status, its in one["responses"].items():
        if int(status) < 400:
            answers.append(" ".join([str(status), *_schemas(its)]))
        else:
            errors.append(str(status))
    yield f"Answers: {', '.join(answers)}. Errors: {', '.join(errors)}."


def _schemas(message: dict[str, Any]) -> list[str]:
    return [_type(one.get("schema", {})) for one in message.get("content", {}).values()]


def _fields(properties: dict[str, Any], required: Iterable[str]) -> str:
    rows = [
        (code(name), _type(one), "yes" if name in required else "", sentence(one.get("description")))
        for name, one in properties.items()
    ]
    return table("field|type|required|meaning", rows) if rows else ""


def _type(schema: dict[str, Any]) -> str:
    """Write the type of a value, with links to the schemas."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f"[{name}](#{name.lower()})"
    if several := schema.get("anyOf") or schema.get("allOf"):
        return " or ".join(dict.fromkeys(map(_type, several)))
    if values := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return ", ".join(code(value) for value in values if value != "")
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def metrics() -> str:
    rows = []
    for one in METRICS:
        kind = {"Counted": "counter", "Timed": "histogram", "Gauge": "gauge"}[type(one).__name__]
        shown = "; ".join(
            f"`{name}`" + ": " * bool(values) + ", ".join(values) for name, values in one.labels.items()
        )
        rows.append((code(one.name), kind, shown, sentence(one.meaning)))
    return table("metric|kind|labels|meaning", rows)


def keys_of_redis() -> str:
    names = {"queue": queue_key("")}
    return table("key|type|holds|bound", ((code(names.get(one.name, one.name)), *one[1:]) for one in CATALOGUE))


def checks_of_servers() -> str:
    rows = []
    for one in sorted(REGISTERED.values(), key=lambda one: CHECKED.index(one.id.partition(".")[0])):
        functions = _functions(Path(inspect.getfile(one.look)))
        found = [*dict.fromkeys(_problems(functions.pop(one.look.__name__), functions, {}))]
        found = found or [("error, warning", "The message of a check of the settings.", "")]
        levels = dict.fromkeys(one for level, _, _ in found for one in level.split(", "))
        rows.append(
            (code(one.id), sentence(one.title), ", ".join(levels), "<br>".join(text for _, text, _ in found))
        )
    return table("check|passes if|level|message", rows)


def checks_of_settings() -> str:
    paths = (path for app in ("executions", "tasks") for path in (ROOT / app).rglob("*.py"))
    told = {one for path in paths for its in _functions(path).values() for one in _problems(its, {}, {})}
    return table(
        "check|level|message", sorted((code(name), level, text) for level, text, name in told if "." in name)
    )


def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}


def _problems(
    function: ast.FunctionDef, helpers: dict[str, ast.FunctionDef], known: dict[str, ast.expr]
) -> Iterator[tuple[str, str, str]]:
    """Yield level, text and id of each Error and Warning that the function, or a helper of it, makes."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(name)]):
                known = known | {name: node.value}
            case ast.Call(ast.Name(name)) if name in helpers and not helpers[name].decorator_list:
                takes = helpers[name].args
                names = [one.arg for one in takes.args]
                given = dict(zip(reversed(names), reversed(takes.defaults), strict=False))
                yield from _problems(helpers[name], {}, given | dict(zip(names, node.args, strict=False)))
            case ast.Call(func) if (kind := ast.unparse(func)) in ("Error", "Warning") or "Warning if" in kind:
                ids = [_text(one.value, {}) for one in node.keywords if one.arg == "id"]
                text = " ".join(_text(node.args[0], known).split()).replace("….", "…")
                text = re.sub(r"\. …$", ".", text)
                yield kind.lower() if kind in ("Error", "Warning") else "error, warning", text, "".join(ids)


def _text(node: ast.expr, known: dict[str, ast.expr]) -> str:
    """Write a message of the code; a value that only the program knows is …"""
    match node:
        case ast.Constant(value):
            text = str(value)
        case ast.JoinedStr(parts):
            text = "".join(_text(one, known) for one in parts)
        case ast.FormattedValue(value) | ast.IfExp(orelse=value):
            text = _text(value, known)
        case ast.Name(name) if name in known:
            text = _text(known[name], {other: one for other, one in known.items() if other != name})
        case ast.Call(ast.Name("plural"), [_, one, *several]):
            text = f"… {_text(several[0], {}) if several else _text(one, {}) + 's'}"
        case _:
            text = "…"
    return text


TABLES: dict[str, Callable[[], str]] = {
    "keys of a project": keys_of_project,
    "variables of the service": variables_of_service,
    "filter": lambda: _options(_filter()),
    "commands": commands,
    "commands of the client": lambda: "\n\n".join(_command(client._parser(), "python -m harbor_refresh.client")),
    "operations": operations,
    "errors of the API": lambda: table("status|meaning", ERRORS.items()),
    "limits of the API": lambda: table("what|at most|answer to more", LIMITS),
    "statuses": lambda: table(
        "status|code|final", ((str(one), code, "yes" if is_final(one) else "") for one, code in CODES.items())
    ),
    "metrics": metrics,
    "keys of Redis": keys_of_redis,
    "checks of servers": checks_of_servers,
    "checks of settings": checks_of_settings,
}


def filled(text: str) -> str:
    """Replace the markers of a page by their tables."""
    return re.sub(
        r"(?:\*`make docs` builds this[^*]*\* )?<!-- table: (.+?) -->", lambda found: TABLES[found[1]](), text
    )


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    from mkdocs.structure.files import File

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=text))
    return files


def on_page_markdown(markdown: str, page: "Page", **_: object) -> str:
    return indented(within_site(filled(markdown), page.file.src_uri))


def within_site(text: str, page: str) -> str:
    """Replace links to files beside the folder docs, which the site does not have, by their text."""

    def replaced(link: re.Match[str]) -> str:
        target = normpath(f"docs/{page}/../{link[2]}")
        if target.startswith("docs/"):
            return link[0]
        return f"[{link[1]}]({relpath('changelog.md', page + '/..')})" if target == "CHANGELOG.md" else link[1]

    return re.sub(r"(?<!!)\[([^\]]*)\]\((\.\./[^)\s]+)\)", replaced, text)


def indented(text: str) -> str:
    """Indent what belongs to an item of a list by four spaces, as Python-Markdown wants it."""
    lines: list[str] = []
    within: list[int] = []  # how far the text of each open item is indented on GitHub
    fence = ""
    for line in text.splitlines():
        width = len(line) - len(line.lstrip())
        begins = not lines or not lines[-1]
        item = None if fence or not (begins or within) else re.match(r" *([-*+]|\d+\.) +", line)
        if line.strip() and not fence and (item or begins):
            while within and width < within[-1]:
                within.pop()
        if item and not begins and "```" in lines[-1]:
            lines.append("")
        moved = max(0, width - within[-1]) + 4 * len(within) if within else width
        lines.append((" " * moved + line.lstrip()).rstrip())
        if mark := re.match(r" *(```+|~~~+)", line):
            fence = "" if fence else mark[1]
        elif item:
            within.append(len(item[0]))
    return "\n".join(lines) + "\n"
