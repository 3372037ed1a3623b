"""`manage.py refresh_queue`: look at the queue, and act on it."""

from executions.management.family import Family
from tasks.management.verbs import claims, mark, quarantine, recover, stats

VERBS = {
    "stats": stats,
    "claims": claims,
    "mark": mark,
    "recover": recover,
    "quarantine": quarantine,
}


class Command(Family):
    help = "Look at the queue of executions to be refreshed, and act on it."
    verbs = VERBS
