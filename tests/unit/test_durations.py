"""Durations and counts, as people read them."""

import pytest

from harbor_refresh.executions.durations import age, ago, duration
from harbor_refresh.executions.text import plural


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
