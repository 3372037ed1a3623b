"""Look-ups of executions by status and by a value in the attributes, which have no ordinary index. Both take
bounded time at any size of the tables."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from django.db import transaction
from django.db.models import Subquery
from django.db.models.functions import Coalesce

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.status import Status, is_final

#: The most ids that a look-up returns.
MOST = 2_000
#: Of the newest executions, how many are compared one by one. 50,000 take about 25 ms.
COMPARED = 50_000
#: The most documents that are read for one value. Most values are in far fewer.
DOCUMENTS = 10_000
#: The most numbers in a path. Each may be a key or an index, which doubles the documents to look for.
MAX_NUMBERS = 3


@dataclass(frozen=True)
class Found:
    """The ids, the newest first. If not `is_complete`, there may be more, among the older executions."""

    ids: Sequence[int]
    is_complete: bool


def find_by_status(status: str) -> Found:
    """Find the newest executions of this status.

    An unfinished execution has an unfinished task, one with an error has a task with an error, and one that was
    stopped has a stopped task; the index task_by_status finds these at any age. Executions without tasks, those
    that have succeeded, and all those of a running Harbor are found among the newest COMPARED only.
    """
    rows = run(
        "find_by_status",
        status=status,
        task_statuses=_statuses_of_its_tasks(status),
        compared=COMPARED,
        most=MOST,
    )
    all_are_indexed = status != Status.SUCCESS and not is_attached()
    return Found([pk for (pk,) in rows], len(rows) < MOST and all_are_indexed)


def find_by_attribute(path: str, text: str) -> Found:
    """Find executions with this text, number, true or false at a dotted path in the attributes, as `Filter` means
    it. Raises Refused for a path or a text that is too long.

    If more than DOCUMENTS executions may have the value, the newest COMPARED executions are compared as well,
    because those that the index returns may all be old.
    """
    chosen = Filter(attributes={path: text})
    keys = path.split(".")
    if sum(key.lstrip("-").isdecimal() for key in keys) > MAX_NUMBERS:
        raise Refused(f"a path takes at most {MAX_NUMBERS} numbers")
    with transaction.atomic():
        run("prefer_indexes")
        rows = run(
            "find_by_attribute", containing=list(_documents(keys, text)), path=keys, value=text, compared=DOCUMENTS
        )
    ids = {pk for pk, _ in rows if pk is not None}
    if is_complete := rows[0][1]:
        return Found(sorted(ids, reverse=True)[:MOST], len(ids) <= MOST)
    newest = chosen.apply(Execution.objects.filter(pk__gt=_before_the_newest(COMPARED))).order_by("-pk")
    ids |= set(newest.values_list("pk", flat=True)[:MOST])
    return Found(sorted(ids, reverse=True)[:MOST], is_complete)


def _before_the_newest(count: int) -> Coalesce:
    """Return the id after which the newest `count` executions begin, or 0, as a part of a query."""
    pks = Execution.objects.order_by("-pk").values("pk")
    return Coalesce(Subquery(pks[count : count + 1]), 0)


def _statuses_of_its_tasks(status: str) -> list[str]:
    if not is_final(status):
        return [one for one in Status.values if not is_final(one)]
    return [] if status == Status.SUCCESS else [status]


def _documents(keys: Sequence[str], text: str) -> Iterator[str]:
    """The documents of which attributes with this text at this path contain one. A key that is a number is a key
    of an object, or an index into an array; which index, only the exact comparison says."""
    numbers = {place for place, key in enumerate(keys) if key.lstrip("-").isdecimal()}
    values = [json.dumps(text), *([text] if _is_number_or_truth(text) else [])]
    ways = [[False, True] if place in numbers else [False] for place in range(len(keys))]
    for value, way in product(values, list(product(*ways))):
        document = value
        for key, is_index in reversed(list(zip(keys, way, strict=True))):
            document = f"[{document}]" if is_index else f"{{{json.dumps(key)}: {document}}}"
        yield document


def _is_number_or_truth(text: str) -> bool:
    """Whether JSON has a number, true or false that is written so. PostgreSQL writes numbers without exponent."""
    if text in ("true", "false"):
        return True
    whole, _, fraction = text.removeprefix("-").partition(".")
    digits = whole.isascii() and whole.isdecimal() and (whole == "0" or not whole.startswith("0"))
    return digits and (("." not in text) or (fraction.isascii() and fraction.isdecimal()))
