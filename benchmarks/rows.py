"""One measured row, and the file of rows: a JSON array, written anew after each of them."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Row:
    """The figures of one strategy. None means not measured, or not knowable.

    `extra` holds the figures of single experiments; in the JSON its keys are beside the other keys.
    """

    strategy: str
    nodes: int
    executions: int
    seconds: float | None = None
    executions_per_second: float | None = None
    redis_commands: int | None = None
    redis_cpu_seconds: float | None = None
    redis_memory_bytes: int | None = None
    sql_statements: int | None = None
    duplicates: int | None = None
    lost: int | None = None
    wrong: int | None = None
    cut: bool = False
    experiment: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        values = asdict(self)
        extra: dict[str, Any] = values.pop("extra")
        return values | extra


class RowFile:
    """Replaced as a whole for each row, so that an interrupted run keeps its rows and readers see valid JSON."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: list[dict[str, Any]] = []
        self._write()

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self._write()

    def text(self) -> str:
        return json.dumps(self.rows, indent=2) + "\n"

    def _write(self) -> None:
        if self._path is None:
            return
        if self._path.exists() and not self._path.is_file():  # a device is written, not replaced
            self._path.write_text(self.text(), encoding="utf-8")
            return
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        fresh.write_text(self.text(), encoding="utf-8")
        fresh.replace(self._path)
