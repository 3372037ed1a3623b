"""Refuse to start with settings that cannot work.

Django's commands run system checks; web, workers and beat do not run them, or ignore their result.
"""

import sys
from collections.abc import Sequence
from typing import Any

from django.core.checks import WARNING, run_checks

from harbor_refresh.executions.checks import OURS


def exit_on_bad_settings(tags: Sequence[str] | None = (OURS,), **_: Any) -> None:
    """Print a line for each error or warning: its id, what it says and its hint. An error ends the program. None:
    make every check."""
    found = [
        message for message in run_checks(tags=tags) if message.level >= WARNING and not message.is_silenced()
    ]
    for one in found:
        sys.stderr.write(f"{one.id}: {one.msg} {one.hint or ''}".strip() + "\n")
    if any(one.is_serious() for one in found):
        raise SystemExit(1)
