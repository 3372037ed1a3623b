"""Every design behind one face, the product among them, with a cycle that needs no Celery."""

from collections.abc import Sequence

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.strategies import STRATEGIES, Strategy
from harbor_refresh.tasks.strategies import strategy as chosen
from harbor_refresh.tasks.strategies.current import ClaimDesign

__all__ = ["STRATEGIES", "strategy"]


def strategy() -> Strategy:
    """The design that the settings name, with a cycle that needs no Celery."""
    named = chosen()
    return named if named.runs_cycles else ClaimHere()


class ClaimHere(ClaimDesign):
    def cycle(self) -> Refreshed:
        """Claim and work here what otherwise goes to the workers, until nothing is left to claim.

        Ends, too, when all that was claimed is locked by others: it would be claimed again at once. If
        the process dies, then its claims are recovered like any worker's.
        """
        outcome = Refreshed()
        while _claim_and_work(outcome):
            pass
        return outcome


def _claim_and_work(outcome: Refreshed) -> bool:
    """Claim and refresh in this process; True if a claimed row was not locked by another transaction.

    It claims the share of one node at a time, so that the other nodes have room."""
    progress = False

    def publish(claims: Sequence[Claim]) -> None:
        nonlocal outcome, progress
        for one in claims:
            done = refresh_claim(one)
            outcome += done
            progress = progress or len(done.locked) < len(one)

    dispatch(publish, waiting=0, together=pacing.DEPTH)
    return progress
