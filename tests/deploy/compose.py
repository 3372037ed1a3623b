"""docker-compose.yml as the engine sees it: variables are replaced, merged parts are merged."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.deploy.dockerfile import ROOT

COMPOSE = ROOT / "docker-compose.yml"
#: `$$`, `${NAME}`, `${NAME:-default}` and `${NAME:?message}`.
VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}")


class Missing(Exception):
    """Raised for a variable that has no default and is not set."""


def loaded(environ: Mapping[str, str]) -> dict[str, Any]:
    text = COMPOSE.read_text(encoding="utf-8")
    found: dict[str, Any] = replaced(yaml.safe_load(text), environ)
    return found


def replaced(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: replaced(one, environ) for key, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, environ) for one in value]
    return VARIABLE.sub(lambda found: _value(found, environ), value) if isinstance(value, str) else value


def _value(found: re.Match[str], environ: Mapping[str, str]) -> str:
    name, kind, rest = found.groups()
    if name is None:
        return "$"
    if given := environ.get(name):
        return given
    if kind == "-":
        return str(rest)
    raise Missing(f"{name}: {rest or 'it has no default'}")
