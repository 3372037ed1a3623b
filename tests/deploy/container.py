"""Containers without an engine: programs with the image's files, account and environment, and a read-only tree.

As root on Linux they are real containers, made of namespaces (container.sh). Other accounts cannot make namespaces
everywhere; there the programs run as that account, in a tree that it may not write to.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil

from harbor_refresh.local.process import spawn
from tests.deploy.dockerfile import DOCKERFILE, stages
from tests.terminal import ran
from tests.waiting import wait_for

SCRIPT = Path(__file__).with_name("container.sh")
(*_, SERVICE) = stages(DOCKERFILE.read_text(encoding="utf-8"))
START = SERVICE.only("ENTRYPOINT").arguments[0]
HEALTH = f"{Path(START).parent}/health.sh"
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL")


@cache
def has_namespaces() -> bool:
    """Whether this account may make them: try it."""
    if os.geteuid() != 0:
        return False
    tried = [*UNSHARE, "sh", "-c", "mount -t tmpfs tmpfs /mnt && setpriv --no-new-privs true"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@dataclass
class Container:
    """A running program. Process 1 of a container is a child of the program that made its namespaces."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    image: "Image"
    variables: Mapping[str, str] = field(repr=False)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def complaints(self) -> list[str]:
        """Return its lines of the log that tell of a fault."""
        fault = re.compile(r'Traceback|"level": "(ERROR|CRITICAL)"')
        return [line for line in self.text().splitlines() if fault.search(line)]

    @property
    def program(self) -> psutil.Process:
        assert self.process.poll() is None, f"{self.name} has ended:\n{self.text()}"
        outer = psutil.Process(self.process.pid)
        return outer.children()[0] if has_namespaces() else outer

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.program.send_signal(number)

    def kill(self) -> None:
        for one in [*psutil.Process(self.process.pid).children(recursive=True), self.process]:
            one.kill()
        self.process.wait(60)

    def is_well(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run the health check beside the program, as an engine does."""
        command = self.image.command([HEALTH, *words], self.variables)
        if has_namespaces():
            inside = ["nsenter", "--target", str(self.program.pid), "--mount", "--pid", "--root"]
            rights = ["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", "--no-new-privs"]
            command = [*inside, *rights, *command]
        return ran(command)


@dataclass
class Image:
    """What the image holds: a tree with /srv, /opt and /run/secrets, and folders of this machine that the tree's
    links lead to."""

    tree: Path
    folders: Sequence[Path]
    running: list[Container] = field(default_factory=list)

    def command(self, words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
        """Return the command line of a program: the environment of the image, these variables, and no other."""
        (env,) = SERVICE.every("ENV")
        given = {**env.pairs, **variables}
        folder = SERVICE.only("WORKDIR").rest
        if not has_namespaces():
            words = [f"{self.tree}{word}" if word.startswith("/srv/") else word for word in words]
            given = {name: self._outside(value) for name, value in given.items()}
            folder = f"{self.tree}{folder}"
        return ["env", "-i", f"--chdir={folder}", *(f"{name}={value}" for name, value in given.items()), *words]

    def _outside(self, value: str) -> str:
        for top in ("/opt/venv", "/run/secrets"):
            value = value.replace(top, f"{self.tree}{top}")
        return value

    def start(self, words: Sequence[str], log: Path, **variables: str) -> Container:
        command = self.command([START, *words], variables)
        if has_namespaces():
            command = [*UNSHARE, "sh", str(SCRIPT), str(self.tree), " ".join(map(str, self.folders)), *command]
        process = spawn(command, log=log, env={"PATH": os.environ["PATH"]})
        container = Container(words[0] if words else "none", process, log, self, variables)
        self.running.append(container)
        if has_namespaces():
            outer = psutil.Process(process.pid)
            wait_for(lambda: outer.children() or process.poll() is not None, f"{container.name} to begin", log=log)
        return container

    def files(self) -> Iterator[tuple[str, int, int]]:
        """Yield each file of the tree with its time and size: what the programs must leave as it is."""
        for path in sorted(self.tree.rglob("*")):
            stat = path.lstat()
            yield str(path.relative_to(self.tree)), stat.st_mtime_ns, stat.st_size

    def end(self) -> None:
        for one in self.running:
            if one.process.poll() is None:
                one.kill()
