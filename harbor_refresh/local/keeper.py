"""Keep processes running, and end them all in time."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harbor_refresh.local import logs
from harbor_refresh.local.child import Child, Patience
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.screen import Screen
from harbor_refresh.local.server import EmbeddedServer

# The sum is less than the ten seconds that Ctrl-C may take.
CHILDREN_HAVE_SECONDS = 6.0
SERVERS_HAVE_SECONDS = 2.4

_LOOK_EVERY_SECONDS = 0.2
_BOUND_LOGS_EVERY_SECONDS = 30.0


def keep_running(
    watch: Sequence[Patience], stopping: Callable[[], bool], screen: Screen, log_folder: Path
) -> None:
    """Until `stopping`, start processes that died again, and keep the logs from growing without bound."""
    bound_logs_at = time.monotonic()
    while not stopping():
        for patience in watch:
            _look_after(patience, screen)
        if time.monotonic() >= bound_logs_at:
            logs.bound(log_folder)
            bound_logs_at += _BOUND_LOGS_EVERY_SECONDS
        time.sleep(_LOOK_EVERY_SECONDS)


def _look_after(patience: Patience, screen: Screen) -> None:
    watched, now = patience.watched, time.monotonic()
    if watched.running or patience.given_up:
        return
    if patience.start_at is None:
        pause = patience.note_death(now)
        if pause is None:
            screen.left_down(watched.name, watched.log)
        else:
            screen.died(watched.name, watched.log, pause)
    elif now >= patience.start_at:
        patience.note_start(now)
        try:
            watched.start()
        except LocalError as exc:
            screen.error(str(exc))


def end_all(children: Sequence[Child], servers: Sequence[EmbeddedServer], hurry: Callable[[], bool]) -> None:
    """End every process, the servers last; in a hurry by SIGKILL.

    1. SIGTERM to the children, all at once, and wait for them.
    2. SIGKILL to all processes that are left in their groups.
    3. Stop the servers at the same time.
    """
    deadline = time.monotonic() + CHILDREN_HAVE_SECONDS
    for child in children:
        child.ask_to_stop()
    while any(child.running for child in children):
        if hurry() or time.monotonic() >= deadline:
            break
        time.sleep(0.05)
    for child in children:
        child.kill()

    def stop(server: EmbeddedServer) -> None:
        server.stop(immediate=hurry(), timeout=SERVERS_HAVE_SECONDS)

    with ThreadPoolExecutor() as pool:
        list(pool.map(stop, servers))
