"""What pyproject.toml and requirements*.txt say about other packages."""

import tomllib
from typing import Any

from packaging.requirements import Requirement

from tests.pages import ROOT


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def extras() -> dict[str, list[Requirement]]:
    """Without those that only name other extras."""
    return {
        name: [one for one in map(Requirement, lines) if one.name != "harbor-refresh"]
        for name, lines in project()["optional-dependencies"].items()
    }


def declared() -> list[Requirement]:
    """Every range, of all extras, too."""
    return [*map(Requirement, project()["dependencies"]), *(one for found in extras().values() for one in found)]


def pinned(name: str = "requirements.txt") -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]
