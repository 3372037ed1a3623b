"""The page of the doctor lists its checks, with the words that the program has."""

import re
from pathlib import Path

from tests.integration.checks.examined import CHECKS

PAGE = (Path(__file__).resolve().parents[2] / "docs/doctor.md").read_text(encoding="utf-8")


def test_every_check_is_documented_in_its_order() -> None:
    rows = re.findall(r"^\| `([a-z_.]+)` \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert rows == [(check.id, check.title) for check in CHECKS]


def test_the_example_counts_them() -> None:
    assert f"\n{len(CHECKS)} checks: " in PAGE
