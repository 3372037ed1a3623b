"""Look at the tables, the rights, the marks and every status of a Harbor. Changes nothing. Exits with 1 if there
is an error: what must be put right before this service is attached."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.attach.dead_tasks import add_job_service
from harbor_refresh.attach.examination import CHECKS
from harbor_refresh.attach.facts import AttachFacts
from harbor_refresh.attach.output import known_data, known_text
from harbor_refresh.doctor.check import Level
from harbor_refresh.doctor.examination import examine
from harbor_refresh.doctor.output import as_data, as_text
from harbor_refresh.executions.management.looked_at import looked_at_shown
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.text import plural

HELP = "look whether this service can be attached"


def arguments(parser: CommandParser) -> None:
    add_job_service(parser)


def answer(options: dict[str, Any]) -> Answer:
    with looked_at_shown() as progress:
        facts = AttachFacts(progress, str(options["job_service_redis"]))
        results = list(examine(CHECKS, facts))
    errors = [one for result in results for one in result.problems if one.level == Level.ERROR]
    *problems, summary = as_text(results)
    return Answer(
        {**as_data(results), **known_data(facts)},
        [*problems, *known_text(facts), summary],
        plural(len(errors), "problem") if errors else "",
    )
