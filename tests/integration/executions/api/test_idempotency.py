"""A creation that is sent again with its key is carried out once."""

from typing import Any

import pytest

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import Execution, IdempotencyKey, Task
from tests.integration.concurrency import at_once
from tests.integration.executions.api.api_client import Program, token

NEW = {"vendor_type": "SCAN", "tasks": [{}]}


def test_the_same_request_with_its_key_gets_the_first_answer(program: Program) -> None:
    first = program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})
    again = program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})
    other = program.post("/executions", NEW, 201, **{"Idempotency-Key": "k2"})
    without = program.post("/executions", NEW, 201)
    assert first == again
    assert len({first["id"], other["id"], without["id"]}) == 3
    assert Execution.objects.count() == 3


def test_the_key_of_another_request_is_refused(program: Program) -> None:
    program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})
    answer = program.post("/executions", {**NEW, "vendor_id": 2}, 422, **{"Idempotency-Key": "k1"})
    assert answer["detail"] == "this Idempotency-Key was used for another request"
    assert Execution.objects.count() == 1


def test_two_callers_may_choose_one_key(program: Program) -> None:
    program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})
    Program(token(Scope.REPORT)).post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})
    assert Execution.objects.count() == 2


def test_a_request_that_failed_leaves_no_key(program: Program) -> None:
    bad = {**NEW, "extra_attrs": {"text": "\x00"}}
    program.post("/executions", bad, 400, **{"Idempotency-Key": "k1"})
    assert IdempotencyKey.objects.count() == 0
    program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})


def test_of_many_requests_with_one_key_at_once_one_creates(program: Program) -> None:
    def send() -> int:
        return int(Program(program.token).post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})["id"])

    assert len(set(at_once(*[send] * 6))) == 1
    assert (Execution.objects.count(), Task.objects.count()) == (1, 1)


def test_a_request_whose_old_key_the_sweep_deletes_at_that_moment_is_a_new_one(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})
    create = IdempotencyKey.objects.bulk_create
    swept: list[Any] = []

    def create_before_the_sweep(*given: Any, **more: Any) -> Any:
        made = create(*given, **more)
        if not swept:
            swept.extend(at_once(IdempotencyKey.objects.all().delete))
        return made

    monkeypatch.setattr(IdempotencyKey.objects, "bulk_create", create_before_the_sweep)
    new = program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"})
    assert new["id"] != old["id"]
    assert program.post("/executions", NEW, 201, **{"Idempotency-Key": "k1"}) == new
    assert (Execution.objects.count(), IdempotencyKey.objects.count()) == (2, 1)
