"""Start processes that end with their parent, and end processes with all their descendants.

Owns `prctl` and `psutil`; no other module of the package uses them. Systems other than Linux have no parent-death
signal: a killed parent may leave its children behind, and the servers' next start ends them (`end_leftover`).
"""

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(death_signal: signal.Signals) -> None:
    """Ask the kernel to send this process `death_signal` when its parent ends; Linux only."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path,
    death_signal: signal.Signals,
    account: pwd.struct_passwd | None = None,
    cwd: Path = Path("/"),
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in its own session; append its output to `log`.

    A thread that lives as long as this process starts it, because the kernel sends the parent-death signal when
    the *thread* that forked ends.
    """
    parent = os.getpid()

    def prepare() -> None:
        die_with_parent(death_signal)
        if os.getppid() != parent:  # the parent ended before the kernel was asked
            os._exit(1)

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=env,
                start_new_session=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                preexec_fn=prepare,  # noqa: PLW1509 - it makes two system calls and no more
            )

    return _spawner(parent).submit(start).result()


@cache
def _spawner(_pid: int) -> ThreadPoolExecutor:
    """One lasting thread for each process; keyed by process id, because a thread does not survive a fork."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, indented for an error message; a note if there are none."""
    with contextlib.suppress(OSError):
        if text := log.read_text(errors="replace").strip():
            return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])
    return "    (nothing was logged)"


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a process and every descendant, also those in other sessions; wait until they are gone."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    _kill(family)
    process.wait()


def _kill(family: list[psutil.Process]) -> None:
    for member in family:
        with contextlib.suppress(psutil.Error):
            member.kill()
    _wait_gone(family, seconds=2)


def _wait_gone(family: list[psutil.Process], seconds: float) -> None:
    """Wait until none of them runs. A zombie counts as ended, because in a container it may never be reaped."""
    deadline = time.monotonic() + seconds
    while any(_is_alive(member) for member in family) and time.monotonic() < deadline:
        time.sleep(0.01)


def _is_alive(member: psutil.Process) -> bool:
    try:
        return bool(member.is_running() and member.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def end_leftover(pid_file: Path, directory: Path, gentle: signal.Signals) -> None:
    """End the server that a killed parent left behind in `directory`, and remove its stale pid file.

    The caller owns the directory (a lock, or a temporary directory), so a server that still runs there has no
    owner. Another process that got the same pid is left alone.
    """
    try:
        pid = int(pid_file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        pid = 0
    with contextlib.suppress(psutil.Error):
        if pid > 0 and Path(psutil.Process(pid).cwd()).resolve() == directory.resolve():
            leftover = psutil.Process(pid)
            family = [leftover, *leftover.children(recursive=True)]
            leftover.send_signal(gentle)
            _wait_gone(family, seconds=5)
            _kill(family)
    pid_file.unlink(missing_ok=True)
