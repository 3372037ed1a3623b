"""Vendor ids that are text: what they mean, what they cost, and that each object is one of its own."""

from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import TextChoices

from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.stops import finish
from harbor_refresh.executions.lifecycle.sweep import sweep
from harbor_refresh.executions.lifecycle.vendor_keys import key_of, number_of
from harbor_refresh.executions.models import Execution, VendorKey
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.queries.listing import page
from harbor_refresh.executions.status import Status
from tests.created import create_many
from tests.integration.database_state import rows

pytestmark = pytest.mark.usefixtures("database")

DEVICE = UUID("8F14E45F-CEEA-467F-9575-18F6A2D1B0A3")


class Number(IntEnum):
    SEVEN = 7


class Word(TextChoices):
    DISK = "disk/a"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (7, 7),
        (Number.SEVEN, 7),
        ("7", 7),
        ("0", 0),
        ("-7", -7),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        (DEVICE, "8f14e45f-ceea-467f-9575-18f6a2d1b0a3"),
        (Word.DISK, "disk/a"),
        *((text, text) for text in ("007", "-0", "+7", "7.0", " 7", "7\n", "\u0667", str(2**63), "a", "x" * 255)),
    ],
)
def test_text_that_is_written_as_a_number_is_the_number_and_other_text_is_text(given: Any, key: int | str) -> None:
    assert (key_of(given), type(key_of(given))) == (key, type(key))
    assert create(NewExecution("A", given)).vendor_key == Execution.objects.get().vendor_key == str(key)
    assert Filter.from_json(Filter(vendor_id=given).as_json()) == Filter(vendor_id=key)


def test_only_text_has_a_row_of_its_own() -> None:
    numbers, texts = create_many(NewExecution("A", one) for one in (-5, "disk/a"))
    assert list(Execution.objects.order_by("pk").values_list("vendor_id", flat=True)) == [-5, number_of("disk/a")]
    assert rows(VendorKey) == {texts.pk: {"pk": texts.pk, "execution_id": texts.pk, "key": "disk/a"}}
    assert [Execution.objects.get(pk=one.pk).vendor_key for one in (numbers, texts)] == ["-5", "disk/a"]


def test_the_number_of_a_text_is_the_same_in_every_release() -> None:
    assert number_of("disk/a") == -3_376_589_136_283_347_439


def test_two_texts_with_one_number_are_two_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_keys, "number_of", lambda key: -1)
    one, other = create_many(NewExecution("A", key) for key in ("one", "other"))
    found = {
        key: [row.pk for row in page(Filter(vendor_type, key), 10, None)[0]]
        for key, vendor_type in (("one", ""), ("other", "A"), ("none", "A"))
    }
    assert found == {"one": [one.pk], "other": [other.pk], "none": []}


def test_the_executions_of_a_text_are_read_from_an_index_with_a_vendor_type_and_without() -> None:
    create_many(NewExecution("A", f"disk/{number % 500}") for number in range(5_000))
    plans = {}
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE execution, execution_vendor_key")
    for vendor_type in ("", "A"):
        chosen = Filter(vendor_type, "disk/7").apply(Execution.objects.order_by("-pk"))[:10]
        plans[vendor_type] = chosen.explain()
        assert len(chosen) == 10
    assert "vendor_key_newest" in plans[""], plans
    assert "Seq Scan" not in plans[""] + plans["A"], plans


def test_the_newest_of_each_text_are_kept() -> None:
    """IMAGE_SCAN keeps one of each object."""
    keys = ["a", "b", "a", "b", 7]
    executions = create_many(NewExecution("IMAGE_SCAN", key) for key in keys)
    for one in executions:
        finish(one.pk, Status.SUCCESS)
    assert sweep().executions == 2
    assert sorted(rows(Execution)) == [one.pk for one in executions[2:]]
    assert {pk: row["key"] for pk, row in rows(VendorKey).items()} == {
        executions[2].pk: "a",
        executions[3].pk: "b",
    }
