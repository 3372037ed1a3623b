"""Give this database a new name in messages: it is a physical copy, which has the name of its original."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.jobs.records import own_database

HELP = "give this database a new name in messages, because it is a copy (a base backup, a snapshot)"


def arguments(parser: CommandParser) -> None:
    pass


def answer(options: dict[str, Any]) -> Answer:
    before, now = own_database.name(), own_database.renew()
    said = f"The name of this database was {before} and is {now}. Its jobs are sent again under the new name."
    return Answer({"before": before, "name": now}, [said])
