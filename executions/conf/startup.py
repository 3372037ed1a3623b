"""The start of a program, which a bad setting ends. Settings are judged by system checks of Django's, each with an
id and a hint (tasks/checks). Django's commands make them. Web, workers and beat do not, or ignore their result."""

import logging
import sys
from collections.abc import Sequence
from typing import Any

from django.core.checks import WARNING, CheckMessage, run_checks

log = logging.getLogger("harbor_refresh")

#: The tag of our own checks, which workers, beat and our commands make at their start. Django's own checks import
#: every page of the service, and only web needs those.
OURS = "harbor_refresh"
INSTALL = 'Add to the settings: INSTALLED_APPS += ["harbor_refresh.executions", "harbor_refresh.tasks"]'


def bad_settings(tags: Sequence[str] | None = (OURS,), *, is_deployed: bool = False) -> list[CheckMessage]:
    """Make the checks of these tags, or all; return the errors and warnings that are not silenced."""
    found = run_checks(tags=tags, include_deployment_checks=is_deployed)
    return [one for one in found if one.level >= WARNING and not one.is_silenced()]


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
