"""What the programs of the service look at when they start.

Django's commands run system checks; web, workers and beat do not run them, or ignore their result.
"""

import logging
import sys
from collections.abc import Sequence
from typing import Any

from harbor_refresh.executions.checks import OURS, bad_settings

log = logging.getLogger("harbor_refresh")


def exit_on_bad_settings(tags: Sequence[str] | None = (OURS,), **_: Any) -> None:
    """Say each error and warning in a line: its id, what it says and its hint. An error ends the program, and is
    printed. A warning is logged. None: make every check."""
    found = bad_settings(tags)
    is_over = any(one.is_serious() for one in found)
    for one in found:
        line = f"{one.id}: {one.msg} {one.hint or ''}".strip()
        if is_over:
            sys.stderr.write(line + "\n")
        else:
            log.warning("At the start: %s", line)
    if is_over:
        raise SystemExit(1)
