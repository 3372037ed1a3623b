"""The object that an execution is for: a whole number, or text such as a UUID.

A number is `execution.vendor_id`, Harbor's column. Text is in a row of our own, and the column then holds a number
that is made from it. So all that goes by the column (the index of the list, what retention keeps of each object)
treats two keys as two objects. Such a number is below 0, so for a row of 0 or more no statement looks for text.

Text that is written as a number of that column would be is that number: `"7"` is 7, and `"007"` is text. So a key
means the same in an address, in JSON, in a command and in Python.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db.models import prefetch_related_objects

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Execution, VendorKey
from harbor_refresh.executions.status import MAX_ID
from harbor_refresh.executions.text import is_text, is_whole, shown

MAX_KEY = VendorKey._meta.get_field("key").max_length or 0
#: What `start` and its like take.
Given = int | str | UUID
TAKES = f"a whole number of at most 64 bits, a UUID, or text of 1 to {MAX_KEY} characters"
NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def key_of(given: Any) -> int | str:
    """Return the number, or the text, that the value means. Raises Refused for what cannot be stored."""
    if isinstance(given, UUID):
        return str(given)
    if is_whole(given, -MAX_ID - 1, MAX_ID):
        return int(given)
    if not is_text(given, MAX_KEY, at_least=1):
        raise Refused(f"vendor_id takes {TAKES}, and got {shown(given)}")
    text = str.__str__(given)  # of an Enum that is text, its value
    if NUMBER.fullmatch(text) and is_whole(number := int(text), -MAX_ID - 1, MAX_ID):
        return number
    return text


def number_of(key: int | str) -> int:
    """Return what the column `vendor_id` holds: the number, or one below 0 that is made from the text. Two texts
    have the same number in one of 9,000,000,000,000,000,000 cases; then retention takes both for one object."""
    if isinstance(key, int):
        return key
    return int.from_bytes(sha256(key.encode()).digest()[:8], "big") % 2**63 - 2**63


def lookups(given: Given) -> Mapping[str, Any]:
    """Return what a query of executions filters by to find those of this object. Raises Refused."""
    key = key_of(given)
    if isinstance(key, int):
        return {"vendor_id": key}
    return {"vendor_id": number_of(key), "text_key__key": key}


def read_for(executions: Sequence[Execution]) -> None:
    """Read the text keys of these rows in one statement; in none if none of them can have one."""
    prefetch_related_objects([one for one in executions if one.vendor_id < 0], "text_key")
