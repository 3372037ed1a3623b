"""Pictures and tables of measured rows: `python -m benchmarks plot FILE.json … --into docs/images`.

A picture depends on the rows alone: the same file gives the same picture.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.errors import BenchError
from benchmarks.pictures import backlog, canvas, freshness, peers, strategies

PICTURES = {one.EXPERIMENT: one.draw for one in (strategies, backlog, freshness, peers)}
GIB = 2**30

Rows = Sequence[dict[str, Any]]


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Read the rows of all files, in the order of the files."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except OSError as exc:
            raise BenchError(f"{path}: {exc.strerror}. Takes files that bench has written with --json.") from exc
        except ValueError as exc:
            raise BenchError(
                f"{path} is not JSON: {exc}. Takes files that bench has written with --json."
            ) from exc
        if not isinstance(found, list) or not all(isinstance(row, dict) and "experiment" in row for row in found):
            raise BenchError(
                f"{path} has no rows of an experiment. Takes files that bench has written with --json."
            )
        rows += found
    return rows


def draw(rows: Rows, folder: Path) -> list[Path]:
    """Draw one picture for each experiment that has one; return the paths."""
    drawn = []
    for experiment, mine in by_experiment(rows).items():
        if experiment in PICTURES:
            try:
                drawn.append(PICTURES[experiment](mine, about_line(mine), folder))
            except canvas.NoMatplotlib as exc:
                raise BenchError(str(exc)) from exc
    return drawn


def markdown(rows: Rows) -> str:
    return "\n".join(tables.markdown(name, mine, about_line(mine)) for name, mine in by_experiment(rows).items())


def by_experiment(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["experiment"]].append(row)
    return dict(found)


def about_line(rows: Rows) -> str:
    """Machine, versions and date in one line: `2 cores of …, 8 GB · PostgreSQL 18.6, … · 21 November 2026`.

    If one picture has rows of several runs, their different lines are joined.
    """
    return "; ".join(dict.fromkeys(_about(row["about"]) for row in rows if row.get("about")))


def _about(about: dict[str, Any]) -> str:
    machine, versions = about["machine"], about["versions"]
    cpu = machine["cpu"].replace("(R)", "").replace("(TM)", "").replace(" CPU", "").split(" @")[0]
    where = f"{machine['cores']} cores of {cpu}, {machine['memory_bytes'] / GIB:.0f} GB"
    names = (("postgresql", "PostgreSQL"), ("valkey server", "Valkey"), ("redis server", "Redis"))
    what = [f"{name} {versions[key]}" for key, name in (*names, ("celery", "Celery")) if key in versions]
    when = datetime.fromisoformat(about["date"])
    return f"{where} · {', '.join(what)} · {when.day} {when:%B %Y}"
