"""The times and bounds that pages promise are those of the code."""

import pytest

from harbor_refresh.executions.conf import pacing as of_executions
from harbor_refresh.executions.news.deliveries.claims import MAX_ATTEMPTS
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.jobs import live_workers
from harbor_refresh.tasks.operations.bulk import MAX_OPEN
from harbor_refresh.tasks.pipeline.schedule import ROWS
from tests import pages

EVERY = {row.task: row.every for row in ROWS}


@pytest.mark.parametrize(
    ("page", "sentence", "number", "is_from"),
    [
        (
            "README.md",
            "A dead worker's refreshes are repeated within about 15 s",
            15,
            pacing.NODE_TTL_SECONDS + EVERY["tasks.recover_stale"],
        ),
        (
            "README.md",
            "refreshes that Redis lost within about 90 s",
            90,
            pacing.RECONCILE_GRACE_SECONDS + EVERY["tasks.reconcile"],
        ),
        (
            "docs/howto/jobs.md",
            "it runs again after about 11 s",
            11,
            2 * live_workers.TTL_SECONDS + live_workers.BEAT_SECONDS,
        ),
        (
            "docs/explanation/concepts.md",
            "an execution is not refreshed for an hour",
            3_600,
            pacing.QUARANTINE_SECONDS,
        ),
        ("docs/explanation/architecture.md", "Beat sends a tick every 30 s", 30, EVERY["tasks.claim_batch"]),
        (
            "docs/howto/callbacks_and_webhooks.md",
            "three days or 30 attempts",
            3 * 24 * 3_600,
            of_executions.DELIVER_MAX_AGE_SECONDS,
        ),
        ("docs/howto/callbacks_and_webhooks.md", "three days or 30 attempts", 30, MAX_ATTEMPTS),
        ("docs/howto/admin.md", "At most four bulk actions may be unfinished at a time", 4, MAX_OPEN),
    ],
)
def test_a_number_that_a_page_promises_is_that_of_the_code(
    page: str, sentence: str, number: float, is_from: float
) -> None:
    assert sentence in " ".join(pages.read(page).split())
    assert is_from == number
