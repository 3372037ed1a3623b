"""Check-ins as the message of a record: what they say is read back as it was said."""

import re
from typing import Any

import pytest

from harbor_refresh.tasks.jobs import Handle
from harbor_refresh.tasks.jobs.handle import Untracked
from harbor_refresh.tasks.jobs.records.check_in import MAX_OF, CheckIn

LEAST = {"done": 0, "of": 0}


@pytest.mark.parametrize("message", ["", "layer 3 of 7", "a|b\nc: d", "check-in 3/7: ", "x" * 2_000])
@pytest.mark.parametrize("numbers", [LEAST, {"done": 3, "of": 7}, {"done": MAX_OF, "of": MAX_OF}])
def test_what_is_said_with_numbers_is_read_back(message: str, numbers: dict[str, int]) -> None:
    made = CheckIn.made(message, **numbers)

    assert made == CheckIn(message, **numbers)
    assert CheckIn.read(made.text) == made


def test_what_is_said_without_numbers_is_the_message_alone() -> None:
    assert CheckIn.made("layer 3", None, None).text == "layer 3"
    assert CheckIn.read("layer 3") == CheckIn("layer 3")


def test_a_message_is_cut_and_its_numbers_stay() -> None:
    assert CheckIn.read(CheckIn.made("x" * 3_000, 3, 7).text) == CheckIn("x" * 2_000, 3, 7)


@pytest.mark.parametrize(
    "text", ["check-in 8/7: x", "check-in 1/9999999999999999: x", "check-in \u0663/7: x", "check-in 3/7"]
)
def test_numbers_that_another_program_wrote_and_are_no_progress_are_text(text: str) -> None:
    assert CheckIn.read(text) == CheckIn(text)


@pytest.mark.parametrize(("numbers", "share"), [(LEAST, 1.0), ({"done": 1, "of": 4}, 0.25)])
def test_the_share_of_nothing_is_all(numbers: dict[str, int], share: float) -> None:
    assert CheckIn.made("", **numbers).share == share


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
    job = Untracked.__new__(Untracked)
    job.was_told_to_stop = False
    job.check_in("layer 3", done=3, of=7)
    assert job.should_stop() is False
