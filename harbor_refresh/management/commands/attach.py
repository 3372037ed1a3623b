"""`manage.py attach`: look whether this service can be attached to a Harbor; put wrong statuses right there."""

from harbor_refresh.executions.management.command import VerbCommand
from harbor_refresh.management.verbs import attach_check, attach_repair

VERBS = {"check": attach_check, "repair": attach_repair}


class Command(VerbCommand):
    help = "Look whether this service can be attached to a running Harbor, and put wrong statuses right there."
    requires_system_checks = ()  # some need tables that the first migration makes
    verbs = VERBS
