"""Idempotency keys: a request that is sent again, because its answer was lost, is not carried out again."""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest
from ninja import Header
from pydantic import StringConstraints

from harbor_refresh.executions.api.problems import Problem
from harbor_refresh.executions.models import IdempotencyKey

MAX_KEY = 200

Key = Annotated[
    str | None,
    StringConstraints(min_length=1, max_length=MAX_KEY, pattern=r"^[!-~]+$"),
    Header(
        None,
        alias="Idempotency-Key",
        description="Repeat a failed request with the same key: it takes effect only once.",
    ),
]


def once(request: HttpRequest, key: str | None, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call `make` and keep its answer, in one transaction; if the caller has used this key, return that answer.

    If two requests with one key come at once, then the second waits at the key's row until the first has
    committed, and gets its answer. If the first fails, then neither its key nor its work is there. If the
    process dies before the answer is sent, then the next request with this key gets it.
    """
    if key is None:
        return make()
    caller = request.auth.name  # type: ignore[attr-defined]
    digest = hashlib.sha256(b"\n".join((request.path.encode(), request.body))).digest()
    with transaction.atomic():
        mine = IdempotencyKey(caller=caller, key=key, request=digest)
        IdempotencyKey.objects.bulk_create([mine], ignore_conflicts=True)
        row = IdempotencyKey.objects.select_for_update().get(caller=caller, key=key)
        if bytes(row.request) != digest:
            raise Problem(422, "The key was used", "this Idempotency-Key was used for another request")
        if row.answer is None:
            row.answer = make()
            row.save(update_fields=["answer"])
    answer: dict[str, Any] = row.answer
    return answer
