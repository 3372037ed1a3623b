"""What can be stored as JSON, what an error shows of a value, and durations and counts as people read them."""

from typing import Any

import pytest

from harbor_refresh.executions.text import MAX_JSON, age, ago, duration, json_text, plural, shown


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


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0 s"), (59, "59 s"), (125, "2 min 5 s"), (3_600, "1 h"), (273_600, "3 d 4 h")]
)
def test_a_duration_has_its_two_largest_units(seconds: int, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-0.1, "0 ms"),
        (0.3501, "350 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.7, "1 min"),
    ],
)
def test_an_age_is_as_precise_as_it_is_short(seconds: float, expected: str) -> None:
    assert age(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(None, "never"), (0.9, "just now"), (1.4, "1 s ago"), (61, "1 min 1 s ago")]
)
def test_how_long_ago_is_in_whole_seconds(seconds: float | None, expected: str) -> None:
    assert ago(seconds) == expected


@pytest.mark.parametrize(("count", "expected"), [(0, "0 entries"), (1, "1 entry"), (3_000, "3,000 entries")])
def test_a_count_has_its_noun(count: int, expected: str) -> None:
    assert plural(count, "entry", "entries") == expected


def test_most_nouns_take_an_s() -> None:
    assert (plural(1, "job"), plural(2, "job")) == ("1 job", "2 jobs")
