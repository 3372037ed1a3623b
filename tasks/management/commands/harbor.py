"""`manage.py harbor VERB`: look at executions, jobs and the queue, act on them, and repair what is wrong."""

from contextlib import nullcontext
from typing import Any

from harbor_refresh.executions.management import verbs
from harbor_refresh.executions.management.command import VerbCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.management.verbs import executions, repair, status
from harbor_refresh.tasks.queue.connection import absence_remembered

#: In the order of the help text.
VERBS = status.VERBS | executions.VERBS | repair.VERBS | verbs.VERBS
#: These work in pages for long, so Redis may be back before their end. The other verbs wait for it once.
LONG = ("stop", "retry", "resume", "delete", "repair", "sweep")


class Command(VerbCommand):
    help = "Look at executions, jobs and the queue, act on them, and repair what is wrong."
    verbs = VERBS

    def answer(self, options: dict[str, Any]) -> Answer:
        with nullcontext() if options["verb"] in LONG else absence_remembered():
            return super().answer(options)
