"""Sends a tick when the domain says that work waits. A tick that cannot be sent is made up for by beat."""

import logging
from typing import Any

log = logging.getLogger("harbor_refresh")


def send_tick(**_: Any) -> None:
    from tasks.claim_batch import claim_batch

    try:
        claim_batch.apply_async(retry=False)
    except Exception as exc:  # a hint never fails the one who gives it, whatever the broker's client raises
        log.warning("Could not wake a tick, the next one of the schedule will do: %s", exc)
