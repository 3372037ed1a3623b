"""Try the failed jobs of executions once more, and what was stopped for them in their chains."""

from typing import Any

from executions.management.output import Answer, plural
from tasks.jobs.lifecycle.retries import retry_failed
from tasks.jobs.overview.selection import for_each, select
from tasks.management.verbs.jobs import chosen as these

HELP = "try the failed jobs of executions once more"

arguments = these.arguments


def answer(options: dict[str, Any]) -> Answer:
    chosen = select(options["ids"])
    meant = sorted([*chosen.going, *chosen.ended])
    counts = dict(for_each(meant, retry_failed))
    chosen = these.without_the_deleted(chosen, meant, counts)
    tried = {pk: count for pk, count in counts.items() if count}
    count = sum(tried.values())
    data = {"jobs": count, "executions": list(tried), **these.as_data(chosen)}
    again = f"{plural(count, 'job')} of {plural(len(tried), 'execution')} will be tried again."
    return Answer(data, [again if tried else "No job of these has failed."], these.failure(chosen))
