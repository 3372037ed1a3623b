"""How a batch is split for the workers: one by one while it is small, in chunks when it is large."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harbor_refresh.tasks.conf.pacing import LEAST_CHUNK, SMALL
from harbor_refresh.tasks.pipeline.dispatcher import chunked
from harbor_refresh.tasks.queue.claim import Batch, Claim

CHUNK = 1000


def batch(count: int, backlog: int | None = None, nodes: int = 1, attempts: dict[str, int] | None = None) -> Batch:
    claim = Claim("n1", "7", tuple(f"{number}:A" for number in range(1, count + 1)))
    return Batch(claim, attempts or {}, count if backlog is None else backlog, nodes)


def sizes(one: Batch, chunk: int = CHUNK) -> list[int]:
    return [len(part) for part in chunked(one, chunk)]


@pytest.mark.parametrize(
    ("count", "backlog", "nodes", "expected"),
    [
        (1, 1, 1, [1]),
        (SMALL, SMALL, 1, [1] * SMALL),
        (SMALL + 1, SMALL + 1, 1, [SMALL + 1]),
        (SMALL + 1, SMALL + 1, 1000, [SMALL + 1]),
        (LEAST_CHUNK, LEAST_CHUNK, 10, [LEAST_CHUNK]),
        (5 * LEAST_CHUNK, 5 * LEAST_CHUNK, 2, [5 * LEAST_CHUNK // 4] * 4),
        (5 * LEAST_CHUNK, 5 * LEAST_CHUNK, 5, [LEAST_CHUNK] * 5),
        (5 * LEAST_CHUNK, 5 * LEAST_CHUNK, 1000, [LEAST_CHUNK] * 5),
        (5 * LEAST_CHUNK, 8 * LEAST_CHUNK, 3, [1334, 1334, 1334, 998]),
        (6000, 1_000_000, 10, [6000]),
        (9000, 9000, 1, [4500, 4500]),
        (9000, 20_000, 1, [6000, 3000]),
        (100, 100, 0, [100]),
        (0, 0, 1, []),
    ],
)
def test_the_size_follows_the_backlog_and_the_number_of_nodes(
    count: int, backlog: int, nodes: int, expected: list[int]
) -> None:
    assert sizes(batch(count, backlog, nodes), chunk=6000) == expected


def test_members_that_failed_before_go_into_separate_chunks_that_shrink_with_each_failure() -> None:
    attempts = {f"{number}:A": number % 4 for number in range(1, 1001) if number % 4}
    parts = chunked(batch(1000, backlog=1_000_000, attempts=attempts), CHUNK)
    found = Counter()
    for part in parts:
        tries = {attempts.get(member, 0) for member in part.members}
        assert len(tries) == 1
        found[tries.pop(), len(part)] += 1
    assert found == {(0, 250): 1, (1, 50): 5, (2, 2): 125, (3, 1): 250}


@given(
    count=st.integers(0, 300),
    backlog=st.integers(0, 10**6),
    nodes=st.integers(0, 50),
    chunk=st.integers(1, 2000),
    failures=st.dictionaries(st.integers(1, 300).map("{}:A".format), st.integers(1, 100)),
)
@settings(max_examples=200, derandomize=True, database=None)
def test_no_member_is_lost_or_doubled_and_no_chunk_is_too_large(
    *,
    count: int,
    backlog: int,
    nodes: int,
    chunk: int,
    failures: dict[str, int],
) -> None:
    one = batch(count, backlog, nodes, failures)
    parts = chunked(one, chunk)
    assert sorted(member for part in parts for member in part.members) == sorted(one.claim.members)
    assert all(1 <= len(part) <= chunk for part in parts)
    assert {part.suffix for part in parts} <= {one.claim.suffix}
