"""Lists come in pages, newest first, and each filter chooses what it says."""

from datetime import UTC, datetime

import pytest

from harbor_refresh.executions.lifecycle.creation import NewExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries import listing
from tests.created import create_many
from tests.integration.executions.api.api_client import Program
from tests.integration.sample_executions import made


def pages(program: Program, query: str) -> list[list[int]]:
    """The ids of each page, up to the last."""
    found, cursor = [], ""
    while True:
        page = program.get(f"/executions?{query}{cursor}")
        found.append([one["id"] for one in page["items"]])
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def ids(program: Program, query: str) -> list[int]:
    return [pk for page in pages(program, query) for pk in page]


def test_the_newest_come_first_in_pages(program: Program) -> None:
    first, second, third = (made(0)[0].pk for _ in range(3))
    assert pages(program, "limit=2") == [[third, second], [first]]
    assert pages(program, "limit=3") == [[third, second, first], []]


@pytest.mark.parametrize("compared", [1, 2, 3, 100])
def test_a_page_ends_after_so_many_comparisons_and_none_is_left_out(
    program: Program, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "COMPARED", compared)
    rows = create_many(NewExecution("EVEN" if number % 2 else "ODD") for number in range(7))
    even = [one.pk for one in reversed(rows) if one.vendor_type == "EVEN"]
    assert ids(program, "vendor_type=EVEN&limit=2") == even
    assert ids(program, "vendor_type=EVEN&vendor_id=0&limit=2") == even
    assert ids(program, "limit=2") == [one.pk for one in reversed(rows)]


def test_a_page_of_one_object_is_whole_however_many_there_are_of_others(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "COMPARED", 2)
    news = (NewExecution("A" if number % 2 else "B", "rare" if number < 4 else "usual") for number in range(12))
    rare = [one.pk for one in create_many(news)][3::-1]
    for query, expected in (("", rare), ("&vendor_type=A", rare[::2])):
        page = program.get(f"/executions?vendor_id=rare{query}&limit=100")
        assert ([one["id"] for one in page["items"]], page["next"]) == (expected, None)


def test_each_filter_chooses_what_it_says(program: Program) -> None:
    attributes = {"repository": {"name": "library/app", "tags": ["a", "b"]}, "count": 3, "contains": "x"}
    nightly = NewExecution("SCAN_ALL", 1, "SCHEDULE", attributes)
    scan, other = (one.pk for one in create_many([nightly, NewExecution("SCAN_ALL", 2)]))
    Execution.objects.filter(pk=other).update(
        status="Error", end_time=datetime.now(UTC), start_time=datetime(2020, 1, 1, tzinfo=UTC)
    )
    for query, chosen in {
        "vendor_type=SCAN_ALL": [other, scan],
        "vendor_type=SCAN": [],
        "vendor_id=1": [scan],
        "vendor_type=SCAN_ALL&vendor_id=2": [other],
        "status=Running": [scan],
        "status=Error&status=Running": [other, scan],
        "trigger=SCHEDULE": [scan],
        "started_before=2020-01-02T00:00:00Z": [other],
        "started_after=2020-01-02T00:00:00Z": [scan],
        "attribute=repository.name=library/app": [scan],
        "attribute=repository.tags.1=b": [scan],
        "attribute=count=3&attribute=contains=x": [scan],
        "attribute=count=4": [],
        "attribute=repository.none=": [],
    }.items():
        assert ids(program, query) == chosen, query


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("status=Succeed", 422),
        ("limit=1001", 422),
        ("cursor=99999999999999999999", 422),
        ("attribute=name", 422),
        ("attribute=" + "a." * 20 + "=1", 422),
        ("started_after=2020-01-01T00:00:00", 422),
        ("started_after=0001-01-01T00:00:00%2B01:00", 400),
        ("started_after=2020-01-01T00:00:00-21:00", 200),
        ("vendor_id=9223372036854775808", 200),
        ("vendor_id=%00", 422),
        ("vendor_type=%00", 400),
        ("attribute=a=%00", 422),
    ],
)
def test_a_filter_that_cannot_be_used_is_an_error(program: Program, query: str, status: int) -> None:
    program.get(f"/executions?{query}", status)
