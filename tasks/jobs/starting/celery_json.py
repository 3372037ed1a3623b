"""Celery's JSON: values that JSON has no type for, in the form in which Celery sends them.

A UUID is `{"__type__": "uuid", "__value__": {"hex": "…"}}`. datetime, date, time, Decimal and bytes have such
forms as well, and so has each type that the project registers with kombu. A job is stored in this form and sent as
it was stored, so a worker reads the same value as from a plain task.
"""

import json
from typing import Any

from kombu.utils.json import dumps, object_hook

from harbor_refresh.executions.text import MAX_JSON, refuse_nesting


def as_json(value: Any) -> Any:
    """Return the value with lists, dicts, text, numbers, true, false and None alone. Raises TypeError for a type
    that Celery does not send either, and ValueError for a value that contains itself."""
    if type(value) in (str, int, float, bool, type(None)):
        return value
    refuse_nesting(value, at_most=MAX_JSON)
    return json.loads(dumps(value))


def native(value: Any) -> Any:
    """Return the value that was stored. A value without such forms stays as it is. Raises ValueError for a form
    that this process does not know."""
    if isinstance(value, list | tuple):
        return [native(one) for one in value]
    if isinstance(value, dict):
        return object_hook({name: native(one) for name, one in value.items()})
    return value
