"""Every design behind one face, the product among them, with a cycle that needs no Celery."""

from collections.abc import Sequence

from harbor_refresh.executions.rollup import Refreshed
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Claim as Claimed
from harbor_refresh.tasks.strategies import OLDER, Strategy, older_strategy

STRATEGIES = ("claim", *OLDER)


def strategy() -> Strategy:
    """The one that the settings name."""
    return older_strategy() or Claim()


class Claim:
    name = "claim"

    def connect(self) -> None:
        pass

    def mark(self, members: Sequence[str]) -> None:
        execution_queue().mark(members)

    def cycle(self) -> Refreshed:
        """Claim and work here what otherwise goes to the workers, until nothing is left to claim.

        Ends, too, when all that was claimed is locked by others: it would be claimed again at once. What if
        the process dies: its claims are recovered like any worker's.
        """
        outcome = Refreshed()
        while _claim_and_work(outcome):
            pass
        return outcome

    def lost(self, members: Sequence[str]) -> list[str]:
        return execution_queue().lost(members)

    def backlog(self) -> int:
        return execution_queue().stats().backlog


def _claim_and_work(outcome: Refreshed) -> bool:
    """Claim and refresh in this process; True if a claimed row was not locked by another transaction.

    It claims the share of one node at a time, so that the other nodes have room."""
    progress = False

    def publish(claims: Sequence[Claimed]) -> None:
        nonlocal outcome, progress
        for claim in claims:
            done = refresh_claim(claim)
            outcome += done
            progress = progress or len(done.locked) < len(claim)

    dispatch(publish, waiting=0, together=refresh_settings().depth)
    return progress
