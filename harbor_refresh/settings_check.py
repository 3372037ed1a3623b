"""Refuse to start with settings that cannot work.

Django's commands run the system checks; web, workers and beat do not run them, or ignore their result.
"""

from typing import Any

from django.core.checks import run_checks


def exit_on_bad_settings(**_: Any) -> None:
    """End the program with one line for each error: its id, the error and its hint."""
    errors = [message for message in run_checks() if message.is_serious()]
    if errors:
        raise SystemExit("\n".join(f"{one.id}: {one.msg} {one.hint or ''}".strip() for one in errors))
