"""The strings that live in Redis: written in one way, and whatever cannot be read is told apart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harbor_refresh.executions.status import MAX_ID, MAX_VENDOR
from harbor_refresh.tasks.queue.members import Token, execution_id, ids, member, readable

vendors = st.text(
    st.characters(exclude_characters=":\x00", exclude_categories=["Cs"]),
    min_size=1,
    max_size=MAX_VENDOR,
)
numbers = st.integers(1, MAX_ID)
nodes = st.from_regex(r"[A-Za-z0-9.-]{1,40}", fullmatch=True)
few = settings(max_examples=200, derandomize=True, database=None)


@given(number=numbers, vendor=vendors)
@few
def test_what_is_written_can_be_read(number: int, vendor: str) -> None:
    text = member(number, vendor)
    assert readable(text.encode()) == text
    assert execution_id(text) == number


@given(number=numbers, vendor=vendors, node=nodes, stamp=st.integers(0, 10**18))
@few
def test_a_token_consists_of_member_node_and_stamp(number: int, vendor: str, node: str, stamp: int) -> None:
    text = f"{member(number, vendor)}:{node}:{stamp}"
    assert Token.read(text.encode()) == Token(member(number, vendor), node, stamp)


@pytest.mark.parametrize(("holder", "is_waiting"), [("n1", False), ("waiting@n1", True)])
def test_the_holder_of_a_token_gives_its_node_and_whether_it_waits_for_a_worker(
    holder: str, is_waiting: bool
) -> None:
    token = Token("1:A", holder, 7)
    assert (token.node, token.is_waiting) == ("n1", is_waiting)


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
        b"x",
        b"1",
        b"1:",
        b":A",
        b"x:A",
        b"1:A:B",
        b"1:A:",
        b" 1:A",
        b"+1:A",
        b"-1:A",
        b"0:A",
        b"1.0:A",
        b"1_0:A",
        b"9223372036854775808:A",
        b"99999999999999999999:A",
        b"\xff",
        b"1:\xff\xfe",
        b"1:A\x00",
        "\uff11:A".encode(),
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


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"1:A",
        b"1:A:n",
        b"1:A:n:",
        b"1:A::7",
        b"1:A:n:x",
        b"1:A:n:-7",
        b"1:A:n:7:7",
        b"x:A:n:7",
        b"0:A:n:7",
        b"1::n:7",
        b"1:A:n:12345678901234567890",
        b"1:A:n:007",
        b"\xff:A:n:7",
    ],
)
def test_a_token_that_cannot_be_read(raw: bytes) -> None:
    assert Token.read(raw) is None


def test_the_ids_of_members_come_in_their_order() -> None:
    assert ids(["3:A", "1:B", "2:A"]) == [3, 1, 2]
