"""The models of the API's pages are made as every pydantic 2 takes them, because the extra "http" takes any."""

from typing import Any

import pytest

from harbor_refresh.executions.api import schemas


def test_a_field_is_a_type_and_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    monkeypatch.setattr(schemas, "create_model", lambda name, **fields: made.update(fields))

    schemas.page_of.__wrapped__(schemas.TaskItem)  # beside its cache

    assert made == {"__base__": schemas.Page, "items": (list[schemas.TaskItem], ...)}
