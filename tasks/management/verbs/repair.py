"""Repair what is wrong. The schedule does most of this by itself; the parts do it now."""

from harbor_refresh.tasks.management.verbs import drift, recover
from harbor_refresh.tasks.management.verbs.executions import refresh
from harbor_refresh.tasks.management.verbs.jobs import new_name, reap

HELP = "find and mark drift, release the claims of dead nodes, settle jobs, refresh executions"
VERBS = {"drift": drift, "claims": recover, "jobs": reap, "refresh": refresh, "new-name": new_name}
