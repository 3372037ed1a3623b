"""The parts of docs/api.md that follow from the code, each between `<!-- made: NAME -->` and `<!-- end -->`. The
text around them is written by hand."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from harbor_refresh.api import api
from harbor_refresh.api_description import ERRORS
from harbor_refresh.executions import pacing
from harbor_refresh.executions.api.idempotency import MAX_KEY
from harbor_refresh.executions.api.pages import MAX_ITEMS
from harbor_refresh.executions.api.parsing import MAX_VALUES
from harbor_refresh.executions.api.schemas import MAX_REPORTS, MAX_TASKS
from harbor_refresh.executions.conf import DECLARED
from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.queries.event_stream import SECONDS_OF_A_STREAM
from harbor_refresh.executions.queries.filters import MAX_ATTRIBUTES
from harbor_refresh.executions.text import MAX_DEPTH, MAX_JSON

PAGE = Path(__file__).resolve().parents[1] / "docs/api.md"
PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Description = dict[str, Any]


def renewed(page: str, description: Description) -> str:
    """Return the page with all its made parts made anew."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]](description)}\n\n{found[3]}", page)


def _operations(description: Description) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _scopes(operation: dict[str, Any]) -> str:
    names = [scope for scheme in operation.get("security", ()) for scopes in scheme.values() for scope in scopes]
    return ", ".join(f"`{one}`" for one in dict.fromkeys(names))


def overview(description: Description) -> str:
    rows = [
        (f"`{method} {path}`", _scopes(operation), operation["summary"])
        for method, path, operation in _operations(description)
    ]
    return _table(("address", "scope", "what it does"), rows)


def details(description: Description) -> str:
    tags: dict[str, list[str]] = {}
    for method, path, operation in _operations(description):
        tags.setdefault(operation["tags"][0], []).append(_operation(method, path, operation, description))
    return "\n\n".join(f"### {tag}\n\n" + "\n\n".join(parts) for tag, parts in tags.items())


def _operation(method: str, path: str, operation: dict[str, Any], description: Description) -> str:
    said = " ".join(operation["description"].split())
    lines = [f"#### `{method} {path}`", f"{operation['summary']}. {said}"]
    if parameters := operation["parameters"]:
        rows = [
            (f"`{one['name']}`", one["in"], _takes(one["schema"], description), _meaning(one))
            for one in parameters
        ]
        lines.append(_table(("parameter", "in", "takes", "meaning"), rows))
    if body := operation.get("requestBody"):
        schema, shown = _content(body, description)
        lines += [_fields(schema, description), _json("json", shown)]
    for status, answer in operation["responses"].items():
        if int(status) < 400:
            schema, shown = _content(answer, description)
            lines.append(f"Answer {status}" + (":" if shown is not None else ", without a body."))
            if shown is not None:
                lines += [_fields(schema, description), _json("json", shown)]
    errors = [str(status) for status in operation["responses"] if int(status) >= 400]
    lines.append(f"Errors: {', '.join(errors)}.")
    return "\n\n".join(line for line in lines if line)


def _content(told: dict[str, Any], description: Description) -> tuple[dict[str, Any], Any]:
    for content in told.get("content", {}).values():
        return _resolved(content["schema"], description), content["example"]
    return {}, None


def _fields(schema: dict[str, Any], description: Description) -> str:
    """A table of those fields of an object whose meaning is told."""
    required = schema.get("required", ())
    rows = [
        (f"`{name}`" + ("" if name in required else "?"), _takes(one, description), one["description"])
        for name, one in schema.get("properties", {}).items()
        if "description" in one
    ]
    return _table(("field", "takes", "meaning"), rows) if rows else ""


def _resolved(schema: dict[str, Any], description: Description) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = description["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found


def _takes(schema: dict[str, Any], description: Description) -> str:
    """The type and the range of a field, in a few words."""
    schema = _resolved(schema, description)
    if choices := schema.get("anyOf"):
        return " or ".join(_takes(one, description) for one in choices)
    if values := schema.get("enum"):
        return ", ".join(f"`{one}`" for one in values)
    kind = str(schema.get("format") or schema.get("type") or "any")
    if kind == "array":
        return f"list of {_takes(schema.get('items', {}), description)}{_range(schema, 'minItems', 'maxItems')}"
    return kind + _range(schema, "minimum", "maximum") + _range(schema, "minLength", "maxLength")


def _range(schema: dict[str, Any], least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if high is None:
        return "" if low is None else f", from {low}"
    unit = {"maxLength": " characters", "maxItems": " items"}.get(most, "")
    return f", at most {high:,}{unit}" if low is None else f", {low:,} to {high:,}{unit}"


def _meaning(parameter: dict[str, Any]) -> str:
    default = parameter["schema"].get("default")
    told: str = parameter.get("description", "")
    return told if default in (None, "", []) else f"{told} Default: {default}."


def errors(_: Description) -> str:
    rows = [(str(status), meaning) for status, meaning in ERRORS.items()]
    return _table(("status", "means"), rows)


def limits(_: Description) -> str:
    rate = DECLARED["requests_per_minute"]
    rows = [
        ("address with its query and the headers", "262,144 bytes", "431, not as a problem"),
        ("body", f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1024**2} MiB", "413"),
        ("values in a body, an empty list or object counting for two", f"{MAX_VALUES:,}", "413"),
        ("nested levels of a body", f"{MAX_DEPTH}", "400"),
        ("`extra_attrs` of one row", f"{MAX_JSON:,} bytes", "400"),
        ("tasks in a request", f"{MAX_TASKS:,}", "422"),
        ("reports in a request", f"{MAX_REPORTS:,}", "422"),
        ("items of a page", f"{MAX_ITEMS:,}; 100 if `limit` is not given", "422"),
        ("`attribute` in a list", f"{MAX_ATTRIBUTES}", "422"),
        ("an Idempotency-Key", f"{MAX_KEY} visible ASCII characters", "422"),
        ("requests of a token in a minute", f"{rate.default:,} (`{rate.name}`)", "429"),
        ("event streams of a web process", f"{pacing.STREAMS}", "503"),
        ("an event stream", f"{SECONDS_OF_A_STREAM:g} s, then open another one", "the stream ends"),
    ]
    return _table(("what", "at most", "else"), rows)


def _table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _json(language: str, value: Any) -> str:
    return f"```{language}\n{json.dumps(value, indent=2)}\n```"


PARTS: dict[str, Callable[[Description], str]] = {
    "overview": overview,
    "details": details,
    "errors": errors,
    "limits": limits,
}


class Command(AnswerCommand):
    help = "Write into docs/api.md what the API's description says. It needs no server."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is out of date")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def answer(self, options: dict[str, Any]) -> Answer:
        old = PAGE.read_text(encoding="utf-8")
        new = renewed(old, api.get_openapi_schema())
        is_current = old == new
        if not (is_current or options["check"]):
            PAGE.write_text(new, encoding="utf-8")
        result = "is up to date" if is_current else "is out of date" if options["check"] else "was written"
        failure = "" if is_current or not options["check"] else "Type: python -m harbor_refresh.api_docs"
        return Answer({"page": "docs/api.md", "current": is_current}, [f"docs/api.md {result}."], failure)
