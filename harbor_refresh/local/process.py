"""Start processes that end with their parent, and end processes with all their descendants.

Owns `prctl` and `psutil`; no other module of the package uses them. Systems other than Linux have no parent-death
signal, so there a killed parent may leave its children behind.
"""

import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Child:
    """A process that `spawn` has started, and that may be started again."""

    name: str
    log: Path
    #: The signal for a clean stop.
    stop_signal = signal.SIGTERM
    #: Of the last process that has been killed or waited for; negative: the signal that ended it.
    exit_code: int | None = None
    _process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self.running else None

    def kill(self) -> None:
        """SIGKILL it and its descendants, even if it has ended and left some behind."""
        if self._process is not None:
            kill_tree(self._process)
            self.exit_code = self._process.returncode
            self._process = None


def end(children: Sequence[Child], seconds: float) -> None:
    """Ask each of them to stop, all at once, and kill what runs after so many seconds or was left behind."""
    for child in children:
        if child._process is not None:
            child._process.send_signal(child.stop_signal)
    deadline = time.monotonic() + seconds
    while any(child.running for child in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    for child in children:
        child.kill()


def die_with_parent(death_signal: signal.Signals) -> None:
    """Ask the kernel to send this process `death_signal` when its parent ends; Linux only."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path,
    death_signal: signal.Signals = signal.SIGKILL,
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
    with suppress(OSError):
        if text := log.read_text(errors="replace").strip():
            return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])
    return "    (nothing was logged)"


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a process, its group and every descendant, also in other sessions; wait until they are gone, for the
    descendants at most two seconds."""
    family: list[psutil.Process] = []
    if process.poll() is None:  # else its id may be another's
        with suppress(psutil.Error):
            family = psutil.Process(process.pid).children(recursive=True)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for member in family:
        with suppress(psutil.Error):
            member.kill()
    process.wait()
    deadline = time.monotonic() + 2
    while any(_is_alive(member) for member in family) and time.monotonic() < deadline:
        time.sleep(0.01)


def _is_alive(member: psutil.Process) -> bool:
    """A zombie counts as ended, because in a container it may never be reaped."""
    try:
        return bool(member.is_running() and member.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
