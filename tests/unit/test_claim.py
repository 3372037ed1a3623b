"""A claim is a value: it is split, narrowed, sent and read without changing."""

import json

import pytest

from harbor_refresh.tasks.queue.claim import Claim

CLAIM = Claim("n1", "1700000000000000", ("3:A", "1:B b", "2:A"))


@pytest.mark.parametrize(
    "members",
    [("1:A",), ("1:-", "2: ", "3:a\nb", "4:é✓"), tuple(f"{number}:A" for number in range(1, 6001))],
)
def test_members_are_sent_as_one_text_and_arrive_unchanged(members: tuple[str, ...]) -> None:
    message = json.loads(json.dumps(CLAIM.only(members).to_message()))
    assert message == {"holder": "n1", "stamp": "1700000000000000", "members": "::".join(members)}
    assert Claim.from_message(message).members == members


def test_a_claim_is_split_by_the_ids_of_its_members() -> None:
    assert CLAIM.among({1, 3, 9}) == CLAIM.only(("3:A", "1:B b"))
    assert CLAIM.without({1, 3, 9}) == CLAIM.only(("2:A",))
    assert CLAIM.among(set()) == CLAIM.without({1, 2, 3}) == CLAIM.only(())


def test_a_part_of_a_claim_keeps_its_node_and_stamp() -> None:
    assert CLAIM.only(["2:A"]) == Claim("n1", "1700000000000000", ("2:A",))
    assert CLAIM.only(iter(())) == Claim("n1", "1700000000000000", ())
    assert CLAIM.members == ("3:A", "1:B b", "2:A")


@pytest.mark.parametrize(
    ("size", "parts"),
    [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), (10, [3])],
)
def test_a_split_neither_loses_nor_doubles_a_member(size: int, parts: list[int]) -> None:
    split = list(CLAIM.split(size))
    assert [len(part) for part in split] == parts
    assert [member for part in split for member in part.members] == list(CLAIM.members)
    assert {part.suffix for part in split} == {CLAIM.suffix}


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        (("5:REPLICATION",), "execution 5 REPLICATION"),
        (("5:A", "3:A", "4:A"), "3 executions, from 5 A on"),
        (tuple(f"{number}:A" for number in range(1, 1001)), "1,000 executions, from 1 A on"),
        ((), "nothing"),
    ],
)
def test_a_person_can_read_a_claim(members: tuple[str, ...], shown: str) -> None:
    assert str(CLAIM.only(members)) == shown
