"""What a filter chooses, against the same rule in Python; and the pages and the count of it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries import chosen_pages
from harbor_refresh.executions.queries.chosen_pages import BULK, Counted, count, page_after, ranges
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.status import FINAL, Status

pytestmark = pytest.mark.usefixtures("database")

MOMENTS = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 5)]
VENDORS = ["SCAN", "GC"]
TRIGGERS = ["MANUAL", "EVENT"]
#: Values of attributes; JSON writes some of them in a way of its own. SQL or Django could read some of the keys as
#: their own.
VALUES: list[Any] = ["a", "", "1", 1, 1.5, True, None, ["x", {"k": "y"}], {"k": "a", "contains": "b"}]
PATHS = ["p", "p.k", "p.contains", "p.0", "p.1.k", "q", "p.k.z"]

a_row = st.fixed_dictionaries(
    {
        "vendor_type": st.sampled_from(VENDORS),
        "vendor_id": st.integers(0, 1),
        "status": st.sampled_from([Status.RUNNING, Status.ERROR, Status.SUCCESS]),
        "trigger": st.sampled_from(TRIGGERS),
        "start_time": st.sampled_from(MOMENTS),
        "extra_attrs": st.dictionaries(st.sampled_from(["p", "q"]), st.sampled_from(VALUES)),
    }
)
a_filter = st.builds(
    Filter,
    vendor_type=st.sampled_from(["", *VENDORS]),
    vendor_id=st.sampled_from([None, 0, 1]),
    statuses=st.lists(st.sampled_from(["Running", "Error"]), unique=True).map(tuple),
    trigger=st.sampled_from(["", *TRIGGERS]),
    started_after=st.sampled_from([None, None, *MOMENTS]),
    started_before=st.sampled_from([None, None, *MOMENTS]),
    attributes=st.dictionaries(
        st.sampled_from(PATHS), st.sampled_from(["a", "", "1", "1.5", "true", "y"]), max_size=2
    ),
)


def meets(row: Mapping[str, Any], chosen: Filter) -> bool:
    """The rule of the filter, in Python."""
    return (
        chosen.vendor_type in ("", row["vendor_type"])
        and chosen.vendor_id in (None, row["vendor_id"])
        and (not chosen.statuses or row["status"] in chosen.statuses)
        and chosen.trigger in ("", row["trigger"])
        and (chosen.started_after is None or row["start_time"] >= chosen.started_after)
        and (chosen.started_before is None or row["start_time"] < chosen.started_before)
        and all(at(row["extra_attrs"], path) == text for path, text in chosen.attributes.items())
    )


def at(value: Any, path: str) -> str | None:
    """The text at a dotted path, as JSON writes it."""
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case dict() | list():
            return "an object, which no text of the test is"
    return str(value)


@settings(max_examples=40)
@given(
    made=st.lists(a_row, max_size=25), filters=st.lists(a_filter, min_size=1, max_size=6), size=st.integers(1, 4)
)
def test_pages_hold_what_the_filter_chooses_in_the_order_of_ids(
    made: Sequence[dict[str, Any]], filters: Sequence[Filter], size: int
) -> None:
    Execution.objects.all().delete()
    found = Execution.objects.bulk_create(
        Execution(**row, end_time=row["start_time"] if row["status"] in FINAL else None) for row in made
    )
    highest = found[-1].pk if found else 0
    for chosen in filters:
        wanted = [one.pk for one, row in zip(found, made, strict=True) if meets(row, chosen)]
        assert walked(chosen, highest, size) == wanted
        assert count(chosen, seconds=60) == Counted(len(wanted), True, highest)
        assert Filter.from_json(chosen.as_json()) == chosen


def walked(chosen: Filter, highest: int, size: int) -> list[int]:
    cursor, ids = 0, list[int]()
    while cursor < highest:
        page, last = page_after(cursor, chosen, highest=highest, size=size)
        assert last > cursor
        assert len(page) <= size
        ids += page
        cursor = last
    return ids


def created(count: int) -> list[int]:
    rows = (Execution(vendor_type="SCAN" if number % 10 == 0 else "GC") for number in range(count))
    return [one.pk for one in Execution.objects.bulk_create(rows)]


def test_a_page_reads_a_bounded_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = created(95)
    monkeypatch.setattr(chosen_pages, "WINDOW", 30)
    ends = []
    cursor = 0
    while cursor < ids[-1]:
        page, cursor = page_after(cursor, Filter(vendor_type="NONE"), highest=ids[-1], size=10)
        assert page == []
        ends.append(cursor)
    assert ends == [ids[29], ids[59], ids[89], ids[-1]]


def test_gaps_between_ids_cost_no_pages() -> None:
    first = Execution.objects.create(vendor_type="SCAN").pk
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence('execution', 'id'), (2 ^ 62)::bigint)")
    last = Execution.objects.create(vendor_type="SCAN").pk
    assert page_after(0, Filter(), highest=last, size=10) == ([first, last], last)


@pytest.mark.parametrize(("highest", "width"), [(0, 0), (1, 1), (3, 3), (23, 3), (24, 3), (25, 4), (95, 12)])
def test_ranges_are_even_and_bounded_in_number(highest: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANGE", 3), ("RANGES", 8)):
        monkeypatch.setattr(chosen_pages, name, value)
    found = ranges(Filter(), highest)
    assert [pk for after, up_to in found for pk in range(after + 1, up_to + 1)] == [*range(1, highest + 1)]
    assert {up_to - after for after, up_to in found[:-1]} <= {width}
    assert len(found) <= 8


def test_ranges_of_given_ids_begin_and_end_with_them() -> None:
    ids = created(9)
    assert ranges(Filter(ids=(ids[4], ids[2])), ids[-1]) == [(ids[2] - 1, ids[4])]
    assert ranges(Filter(ids=(ids[4], ids[2])), ids[1]) == []


def test_executions_that_do_actions_are_chosen_by_their_type_or_ids_only() -> None:
    action, other = (Execution.objects.create(vendor_type=one).pk for one in (BULK, "SCAN"))
    for chosen, wanted in (
        (Filter(), [other]),
        (Filter(statuses=("Running",)), [other]),
        (Filter(vendor_type=BULK), [action]),
        (Filter(ids=(action, other)), [action, other]),
    ):
        assert walked(chosen, other, 10) == wanted
        assert count(chosen, seconds=60).count == len(wanted)


def test_a_count_whose_time_is_up_says_that_it_is_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = created(95)
    monkeypatch.setattr(chosen_pages, "COUNTED_WINDOW", 30)
    assert count(Filter(vendor_type="SCAN"), seconds=60) == Counted(10, True, ids[-1])
    assert count(Filter(vendor_type="SCAN"), seconds=-1) == Counted(3, False, ids[-1])
    assert count(Filter(started_before=MOMENTS[0] - timedelta(days=9_999)), seconds=60) == Counted(
        0, True, ids[-1]
    )
