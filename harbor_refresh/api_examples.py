"""Examples of requests and answers, made from the schemas: a field's own example, or a value of its type."""

from collections.abc import Mapping
from typing import Any

REF = "#/components/schemas/"
#: Levels of an example; a schema that contains itself ends there.
MAX_LEVELS = 8
FORMATS = {"date-time": "2026-01-31T12:00:00Z", "uri": "https://example.com/"}


def example(schema: Mapping[str, Any], schemas: Mapping[str, Any], levels: int = MAX_LEVELS) -> Any:
    """Return a value that is valid by the schema. `schemas` are those that its references name."""
    if listed := schema.get("examples"):
        return listed[0]
    for key in ("example", "const", "default"):
        if key in schema:
            return schema[key]
    if values := schema.get("enum"):
        return values[0]
    if "$ref" in schema:
        return example(schemas[schema["$ref"].removeprefix(REF)], schemas, levels)
    if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return example(choices[0], schemas, levels)
    return _of_type(schema, schemas, levels)


def _of_type(schema: Mapping[str, Any], schemas: Mapping[str, Any], levels: int) -> Any:
    kind = schema.get("type")
    if kind == "object":
        inside = schema.get("properties", {}) if levels else {}
        return {name: example(one, schemas, levels - 1) for name, one in inside.items()}
    if kind == "array":
        return [example(schema.get("items", {}), schemas, levels - 1)] if levels else []
    if kind == "string":
        return FORMATS.get(schema.get("format", ""), "")
    if kind == "integer":
        return max(1, schema.get("minimum", 1))
    return {"number": 0.5, "boolean": True}.get(str(kind))
