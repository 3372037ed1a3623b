"""`manage.py executions`: look at executions, and act on all that a filter chooses."""

from executions.management.command import VerbCommand
from tasks.management.verbs.executions import actions, delete, listing, resume, retry, show, stop

VERBS = {
    "list": listing,
    "show": show,
    "stop": stop,
    "retry": retry,
    "delete": delete,
    "resume": resume,
    "actions": actions,
}


class Command(VerbCommand):
    help = "Look at executions, and stop, retry or delete all that a filter chooses."
    verbs = VERBS
