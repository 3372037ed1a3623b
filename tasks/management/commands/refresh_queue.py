"""`manage.py refresh_queue`: look at the queue, and act on it."""

from executions.management.command import VerbCommand
from tasks.management.verbs import claims, mark, quarantine, queue_stats, recover, why

VERBS = {
    "stats": queue_stats,
    "claims": claims,
    "why": why,
    "mark": mark,
    "recover": recover,
    "quarantine": quarantine,
}


class Command(VerbCommand):
    help = "Look at the queue of executions to be refreshed, and act on it."
    verbs = VERBS
