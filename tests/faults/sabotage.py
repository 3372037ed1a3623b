"""A worker that kills or stops itself: the Celery app of the product, with a handler at a named point.

Started as `celery -A tests.faults.sabotage worker`. SABOTAGE is a JSON object:

    point   the point of `harbor_refresh.executions.lifecycle.crash_points` at which it acts
    act     kill_group | kill_process | stop_group | wait: stay at the point until the file `until` exists |
            note: write a line to the file `notes`
    once    path of a file that it creates when it acts; it acts only if the file does not exist
    id      act only if this execution is among those at the point (instead of once)
    skip    how often it lets the point pass before
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from harbor_refresh.celery import app
from harbor_refresh.executions.lifecycle import crash_points

__all__ = ["app"]

plan = json.loads(os.environ.get("SABOTAGE", "{}"))


def _is_first() -> bool:
    try:
        Path(plan["once"]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def sabotage(point: str, execution_ids: Sequence[int]) -> None:
    if point != plan["point"]:
        return
    if plan.get("skip", 0):
        plan["skip"] -= 1
        return
    if "id" in plan and plan["id"] not in execution_ids:
        return
    if "once" in plan and not _is_first():
        return
    match plan["act"]:
        case "kill_group":
            os.killpg(0, signal.SIGKILL)
        case "kill_process":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop_group":
            os.killpg(0, signal.SIGSTOP)
        case "note":
            with Path(plan["notes"]).open("a") as notes:
                notes.write(f"{point}\n")
        case "wait":
            while not Path(plan["until"]).exists():
                time.sleep(0.02)


if plan:
    crash_points.handlers.append(sabotage)
