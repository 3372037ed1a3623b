"""The walk of a verb through the executions that a filter chooses, portion by portion. A job and a command do the
same, and so does a job that comes again, because the verbs are idempotent."""

from collections.abc import Iterator, Sequence
from functools import partial

from django.db import DatabaseError, transaction

from harbor_refresh.executions.database import first_line
from harbor_refresh.executions.errors import Contended
from harbor_refresh.executions.lifecycle.halving import in_halves
from harbor_refresh.executions.queries.chosen_pages import page_after
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.operations.bulk_verbs import VERBS, BulkVerb, Done
from harbor_refresh.tasks.queue.connection import absence_remembered
from harbor_refresh.tasks.queue.sets import sized_pages


def walk(name: str, chosen: Filter, after: int, up_to: int, *, alone: bool = False) -> Iterator[tuple[int, Done]]:
    """Do the verb for the chosen executions with ids in `(after, up_to]`, in the order of their ids. Yields, after
    each commit, the last id of it and what was done. `alone`: each execution in a transaction by itself.

    If the process dies, then the portion in progress is rolled back. If the database is away: DatabaseAway.
    """
    verb = VERBS[name]
    while after < up_to:
        page = page_after(after, chosen, highest=up_to, size=verb.page)
        for portion in _portions(verb, page.ids, alone=alone):
            for part, result in in_halves(partial(_commit, verb), portion, (DatabaseError, Contended)):
                done = result if isinstance(result, Done) else Done(failed={part[0]: first_line(result)})
                if done.failed:
                    signals.bulk_refused.send(sender=walk, verb=name, reasons=done.failed)
                yield part[-1], done
        after = page.cursor


def _portions(verb: BulkVerb, ids: Sequence[int], *, alone: bool) -> Iterator[Sequence[int]]:
    if alone:
        return iter([pk] for pk in ids)
    weights = verb.weights(ids)
    return sized_pages(((pk, weights.get(pk, 0)) for pk in ids), verb.heaviest)


def _commit(verb: BulkVerb, ids: Sequence[int]) -> Done:
    """Act in one transaction. Several executions wait only briefly for a locked row, because their own locks are
    held meanwhile."""
    with absence_remembered(), transaction.atomic():
        if len(ids) > 1:
            run("wait_briefly")
        return verb.act(ids)
