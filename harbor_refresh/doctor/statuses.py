"""Checks of the work itself: drift, reconcile, quarantine, old claims, dead letters."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from harbor_refresh.doctor.check import Check, Problem, warning
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.doctor.overview import overview
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.pipeline.reconciliation import look_for_drift
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.members import Token
from harbor_refresh.tasks.schedule import interval_of

#: How long to look for drift. A longer search is `reconcile --dry-run`.
LOOK_SECONDS = 3.0
#: A watermark this far behind makes each pass of reconcile read much.
FAR_BEHIND = timedelta(hours=1)
#: Pages of claims that are looked at for old ones.
PAGES = 10


def drift(facts: Facts) -> Iterator[Problem]:
    """Find statuses that differ from their tasks and wait for no refresh. Reconcile marks a new one in its next
    pass; one that several passes have missed is an error."""
    found = look_for_drift(LOOK_SECONDS)
    lost = found.drifted - found.waiting
    if not lost or found.oldest is None:
        return
    age = datetime.now(UTC) - found.oldest
    which = ", ".join(str(one.execution_id) for one in found.examples[:3])
    differ = plural(lost, "status differs", "statuses differ")
    what = f"{differ} from what the tasks say, for executions that are not on the queue, such as {which}."
    passes = timedelta(seconds=pacing.RECONCILE_GRACE_SECONDS + 3 * interval_of("tasks.reconcile"))
    if age > passes:
        yield Problem(f"{what} Reconcile should have found them.", "manage.py harbor repair drift")
    else:
        yield warning(
            f"{what} The next pass of reconcile marks them.",
            "Do nothing, or mark them at once: manage.py harbor repair drift",
        )


def watermark(facts: Facts) -> Iterator[Problem]:
    mark = Watermark.objects.filter(pk=1).first()
    if mark is None or mark.last_pass_at is None:
        return
    behind = mark.last_pass_at - mark.settled_before
    if behind > FAR_BEHIND:
        yield warning(
            f"The watermark of reconcile is {timedelta(seconds=round(behind.total_seconds()))} behind, so each "
            "pass reads more. Either a transaction has been open since then, or a status that differs from its "
            "tasks is not refreshed.",
            "manage.py harbor repair drift --dry-run",
        )


def old_claims(facts: Facts) -> Iterator[Problem]:
    """Claims that recovery should have released. A large `processing` is read in part only."""
    stats, limit = facts.stats, round(2 * pacing.STALE_SECONDS * 1_000_000)
    old = 0
    unreadable = 0
    for number, page in enumerate(execution_queue().pages_of_tokens()):
        tokens = [Token.read(raw) for raw in page]
        unreadable += tokens.count(None)
        old += sum(1 for token in tokens if token and stats.now - token.stamp > limit)
        if number >= PAGES:
            break
    if old:
        yield Problem(
            f"Recovery has not released {plural(old, 'claim')}, although more than "
            f"{2 * pacing.STALE_SECONDS:,.0f} s have passed.",
            "manage.py harbor repair claims; and look at beat, which should send tasks.recover_stale every few "
            "seconds",
        )
    if unreadable:
        yield warning(
            f"{plural(unreadable, 'entry', 'entries')} of processing cannot be read, because another program "
            "wrote there.",
            "manage.py harbor repair claims (it drops them)",
        )


CHECKS = (
    Check("status.drift", "each status is what its tasks say", drift, (Need.DATABASE, Need.REDIS)),
    Check("status.repaired", "no mark was lost lately", overview("drift"), (Need.DATABASE,)),
    Check("status.reconcile", "reconcile runs", overview("reconcile_late"), (Need.DATABASE,)),
    Check("status.watermark", "reconcile's watermark keeps up", watermark, (Need.DATABASE,)),
    Check(
        "status.waiting", "no execution waits for long", overview("oldest_waits", "long_backlog"), (Need.REDIS,)
    ),
    Check(
        "status.paused", "nothing is paused", overview("paused", "database_was_away"), (Need.DATABASE, Need.REDIS)
    ),
    Check("status.quarantine", "no execution is in quarantine", overview("quarantined"), (Need.DATABASE,)),
    Check("status.claims", "no claim is too old", old_claims, (Need.REDIS,)),
    Check("status.deliveries", "no notification was given up", overview("dead_letters"), (Need.DATABASE,)),
)
