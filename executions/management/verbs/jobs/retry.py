"""Try the failed jobs of executions once more, and what was stopped for them in their chains."""

from typing import Any

from executions.management.output import Answer, plural
from executions.management.verbs.jobs import chosen as these
from executions.usecases.jobs import choose, retry_failed

HELP = "try the failed jobs of executions once more"

arguments = these.arguments


def answer(options: dict[str, Any]) -> Answer:
    chosen = choose(options["ids"])
    tried = {pk: count for pk in sorted([*chosen.going, *chosen.ended]) if (count := retry_failed(pk))}
    count = sum(tried.values())
    data = {"jobs": count, "executions": list(tried), **these.as_data(chosen)}
    again = f"{plural(count, 'job')} of {plural(len(tried), 'execution')} will be tried again."
    return Answer(data, [again if tried else "No job of these has failed."], these.failure(chosen))
