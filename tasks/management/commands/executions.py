"""`manage.py executions`: look at executions, and act on all that a filter chooses."""

from harbor_refresh.executions.management.command import VerbCommand
from harbor_refresh.tasks.management.verbs.executions import (
    actions,
    delete,
    listing,
    refresh,
    resume,
    retry,
    show,
    stop,
)

VERBS = {
    "list": listing,
    "show": show,
    "stop": stop,
    "retry": retry,
    "resume": resume,
    "refresh": refresh,
    "delete": delete,
    "actions": actions,
}


class Command(VerbCommand):
    help = "Look at executions, and stop, retry, resume, refresh or delete all that a filter chooses."
    verbs = VERBS
