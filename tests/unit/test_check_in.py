"""Check-ins: numbers that are no progress are refused by name, and a message is cut."""

import re
from typing import Any

import pytest

from harbor_refresh.tasks.jobs import Handle
from harbor_refresh.tasks.jobs.running.handle import MAX_OF, JobCheckIn, Untracked


def test_a_message_is_cut_and_its_numbers_stay() -> None:
    assert JobCheckIn.made("x" * 3_000, 3, 7) == JobCheckIn("x" * 2_000, 3, 7)
    assert JobCheckIn.made("a\x00b", None, None).share is None


@pytest.mark.parametrize(("done", "of", "share"), [(0, 0, 1.0), (1, 4, 0.25), (MAX_OF, MAX_OF, 1.0)])
def test_the_share_of_nothing_is_all(done: int, of: int, share: float) -> None:
    assert JobCheckIn.made("", done, of).share == share


@pytest.mark.parametrize(
    "numbers",
    [
        {"done": 3},
        {"of": 7},
        {"done": 8, "of": 7},
        {"done": -1, "of": 7},
        {"done": 3, "of": MAX_OF + 1},
        {"done": True, "of": 7},
        {"done": 0.5, "of": 1},
        {"done": "3", "of": "7"},
    ],
)
@pytest.mark.parametrize("kind", [Handle, Untracked])
def test_numbers_that_are_no_progress_are_refused_by_name(kind: type[Handle], numbers: dict[str, Any]) -> None:
    job = kind.__new__(kind)
    got = "done={!r}, of={!r}".format(numbers.get("done"), numbers.get("of"))
    takes = "check_in takes done and of together, whole numbers with 0 <= done <= of <= 10^15"

    with pytest.raises(ValueError, match=f"^{re.escape(takes)}, and got {re.escape(got)}$"):
        job.check_in("layer", **numbers)


def test_a_job_that_was_called_like_a_function_checks_in_to_no_one() -> None:
    job = Untracked(None)  # type: ignore[arg-type]
    job.check_in("layer 3", done=3, of=7)
    assert job.should_stop() is False
