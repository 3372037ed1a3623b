"""What can be stored as JSON, and what an error shows of a value."""

from typing import Any

import pytest

from harbor_refresh.executions.text import MAX_JSON, json_text, shown


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def shared(levels: int) -> list[Any]:
    """A few lists, and as JSON 1000 to the power of its levels."""
    value: list[Any] = [1]
    for _ in range(levels):
        value = [value] * 1_000
    return value


def holds_itself(times: int) -> list[Any]:
    value: list[Any] = []
    value += [value] * times
    return value


def test_as_many_levels_and_bytes_as_may_be_are_taken() -> None:
    assert json_text(deep(100)) == "[" * 100 + "1" + "]" * 100
    assert len(json_text("ä" * 999_999).encode()) == MAX_JSON
    assert len(json_text([1] * 666_666)) == 3 * 666_666


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (deep(101), "more than 100 levels, one in the other"),
        (deep(50_000), "more than 100 levels"),
        (holds_itself(1), "more than 100 levels"),
        (holds_itself(2), "more than 2,000,000 values"),
        (shared(2), "more than 2,000,000 values|bytes"),
        (shared(7), "more than 2,000,000 values"),
        ({"a": ["ä" * 1_000_000]}, "it takes 2,000,011 bytes"),
    ],
    ids=["101", "50000", "itself", "itself twice", "million", "endless", "bytes"],
)
def test_too_deep_and_endless_values_are_refused_soon(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        json_text(value)


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "value", [10**5_000, Unspeakable(), "x" * 10**6, ["x" * 10**6] * 1_000, deep(50_000)], ids=range(5)
)
def test_every_shown_value_is_short(value: Any) -> None:
    assert 0 < len(shown(value)) <= 80
