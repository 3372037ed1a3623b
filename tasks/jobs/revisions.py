"""The revisions of a job: each run has one, and each next run a higher one.

Without a hook they count the runs: 0, 1, 2 … With a hook they are unix seconds, as Harbor's are. A job begins with
the second in which it was recorded. Another run has the second in which it was decided; if the clock stands still
or goes back, it has the revision before plus one. A revision is decided once, when the job begins to wait for that
run, and stored with the job, so each repeat of a report has the same. Reports are compared by revision, so a job
that was recorded before a hook was set, or that goes on after it was removed, only has higher numbers.
"""

import time

from harbor_refresh.tasks.jobs import hook


def first_revision() -> int:
    """The revision in which a job that is recorded now waits for its first run."""
    return int(time.time()) if hook.is_set() else 0


def next_revision(revision: int, now: float) -> int:
    """The revision of the run after this one. `now` is in seconds."""
    return max(revision + 1, int(now)) if hook.is_set() else revision + 1
