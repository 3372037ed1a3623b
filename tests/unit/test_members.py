"""The strings that live in Redis: written in one way, and whatever cannot be read is told apart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harbor_refresh.executions.status import MAX_ID, MAX_VENDOR
from harbor_refresh.tasks.queue.members import Token, execution_id, member, readable

vendors = st.text(
    st.characters(exclude_characters=":\x00", exclude_categories=["Cs"]),
    min_size=1,
    max_size=MAX_VENDOR,
)
numbers = st.integers(1, MAX_ID)
few = settings(max_examples=200, derandomize=True, database=None)


@given(number=numbers, vendor=vendors)
@few
def test_what_is_written_can_be_read(number: int, vendor: str) -> None:
    text = member(number, vendor)
    assert readable(text.encode()) == text
    assert execution_id(text) == number


@given(raw=st.binary(max_size=60))
@few
def test_any_bytes_can_be_read_without_an_error(raw: bytes) -> None:
    text = readable(raw)
    assert text is None or text.encode() == raw
    token = Token.read(raw)
    assert token is None or f"{token.member}:{token.holder}:{token.stamp}".encode() == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"1",
        b"1:",
        b":A",
        b"x:A",
        b"1:A:B",
        b"1:A:",
        b" 1:A",
        b"-1:A",
        b"0:A",
        b"1_0:A",
        b"9223372036854775808:A",
        b"1:\xff\xfe",
        b"1:A\x00",
        "\u0661:A".encode(),
        b"1:" + b"V" * (MAX_VENDOR + 1),
    ],
)
def test_a_member_that_cannot_be_read(raw: bytes) -> None:
    assert readable(raw) is None


@pytest.mark.parametrize(
    "text",
    ["1:A", f"{MAX_ID}:A", "7:SCAN ALL", "7:é✓", "7:a\nb", "7:" + "é" * MAX_VENDOR, "7:-", "7:7"],
)
def test_a_member_that_can_be_read(text: str) -> None:
    assert readable(text.encode()) == text
