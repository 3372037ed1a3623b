"""Refuse to start with settings that cannot work.

Django's commands run system checks; web, workers and beat do not run them, or ignore their result.
"""

from collections.abc import Sequence
from typing import Any

from django.core.checks import run_checks

from harbor_refresh.executions.checks import OURS


def exit_on_bad_settings(tags: Sequence[str] | None = (OURS,), **_: Any) -> None:
    """End the program with one line for each error: its id, the error and its hint. None: make every check."""
    errors = [message for message in run_checks(tags=tags) if message.is_serious()]
    if errors:
        raise SystemExit("\n".join(f"{one.id}: {one.msg} {one.hint or ''}".strip() for one in errors))
