"""`manage.py` has four commands of ours; programs of packages that are not installed apps are `python -m`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["benchmarks", "examples.simulation"])
def test_a_program_beside_manage_py_says_how_it_is_typed(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", name, "--help"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"usage: python -m {name} ")
