"""Processor time: seconds by kind of process, children included."""

import contextlib

import psutil


def used(kinds: dict[str, list[int | None]]) -> dict[str, float]:
    """Return the seconds each kind has used so far. `kinds` has process ids; the children are added.

    A process that has ended is not counted, so call this while all of them run.
    """
    seconds = {kind: sum(_used(pid) for pid in pids if pid) for kind, pids in kinds.items()}
    whole = psutil.cpu_times()
    busy = whole.user + whole.nice + whole.system
    return seconds | {"all else": busy - sum(seconds.values()), "idle": whole.idle + whole.iowait}


def spent(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {kind: after[kind] - before.get(kind, 0.0) for kind in after}


def _used(pid: int) -> float:
    seconds = 0.0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for process in [parent, *parent.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                seconds += times.user + times.system
    return seconds
