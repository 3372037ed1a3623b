"""Variants of one long test: `make test` runs the first of them, and `make slow` the others."""

from typing import Any

import pytest


def variants(first: Any, *others: Any) -> list[Any]:
    return [first, *(pytest.param(other, marks=pytest.mark.slow) for other in others)]
