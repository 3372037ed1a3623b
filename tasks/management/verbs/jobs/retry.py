"""Retry the failed jobs of executions, and the jobs of their chains that were stopped because of them."""

from typing import Any

from harbor_refresh.executions.audit import Kind, Word, at_terminal, noted
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from harbor_refresh.tasks.jobs.overview.selection import for_each, select
from harbor_refresh.tasks.management.verbs.jobs import named_executions
from harbor_refresh.tasks.queue.connection import absence_remembered


def _retry(execution_id: int) -> int:
    with noted(at_terminal(), Word.RETRY, Kind.EXECUTION, execution_id) as entry:
        entry.count = retry_failed(execution_id)
        entry.skip = not entry.count
    return entry.count


def answer(options: dict[str, Any]) -> Answer:
    chosen = select(options["ids"])
    tried = sorted([*chosen.going, *chosen.ended])
    with absence_remembered():
        counts = dict(for_each(tried, _retry))
    chosen = named_executions.without_deleted(chosen, tried, counts)
    retried = {pk: count for pk, count in counts.items() if count}
    count = sum(retried.values())
    data = {"jobs": count, "executions": list(retried), **named_executions.as_data(chosen)}
    again = f"{plural(count, 'job')} of {plural(len(retried), 'execution')} will be tried again."
    return Answer(data, [again if retried else "No job of these has failed."], named_executions.failure(chosen))
