"""A RabbitMQ of Debian's package as a plain process, with directories of its own.

Erlang finds its nodes by a program `epmd`. Each server has its own on a port of its own, so that two tests never
meet, and ends it: Erlang would leave it running for ever.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

from amqp import Connection
from amqp.exceptions import AMQPError

from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.process import kill_tree, spawn
from harbor_refresh.local.server import EmbeddedServer
from tests.programs import needs
from tests.waiting import wait_for

#: Debian's program on PATH changes to another user; this one starts the server.
PLAIN = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
USER, PASSWORD, VHOST = "harbor", "p%40;ss/word", "a/b"


class RabbitMQ(EmbeddedServer):
    """Its user and its vhost are made anew if its data are gone. `lines` are appended to its configuration;
    `terms` are of its application, in Erlang, for what the configuration has no line."""

    name = "RabbitMQ"
    answer_within_seconds = 300.0

    def __init__(self, directory: Path, *, lines: tuple[str, ...] = (), terms: str = "") -> None:
        super().__init__(directory)
        self._program = PLAIN if needs("rabbitmq-server") and PLAIN.exists() else needs("rabbitmq-server")
        self._lines = lines
        self._terms = terms
        self._epmd_port = choose_port(None)
        self._epmd: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        login = f"{USER}:{quote(PASSWORD, safe='')}"
        return f"amqp://{login}@{LOOPBACK}:{self.port}/{quote(VHOST, safe='')}"

    @property
    def data(self) -> Path:
        """What is gone if the server is emptied."""
        return self.directory / "data"

    def connect(self) -> Connection:
        connection = Connection(
            f"{LOOPBACK}:{self.port}", USER, PASSWORD, virtual_host=VHOST, connect_timeout=5, read_timeout=5
        )
        connection.connect()
        return connection

    def length(self, queue: str) -> int:
        """Count the messages that wait; -1 if there is no such queue."""
        with self.connect() as connection:
            try:
                return int(connection.channel().queue_declare(queue, passive=True).message_count)
            except AMQPError:
                return -1

    def grant(self, *, configure: str = ".*", write: str = ".*", read: str = ".*") -> None:
        """Give the user these rights, and no others."""
        rights = ["set_permissions", "-p", VHOST, USER, configure, write, read]
        subprocess.run([self._program.with_name("rabbitmqctl"), *rights], env=self._env(), check=True, timeout=120)

    def signal(self, number: signal.Signals) -> None:
        """Send the signal; SIGSTOP is waited for, because a thread on another core runs on for a moment."""
        if self.pid is not None:
            os.kill(self.pid, number)
            if number == signal.SIGSTOP:
                wait_for(lambda: self._threads() == {"T"}, "each thread of RabbitMQ to stand still")

    def _threads(self) -> set[str]:
        """The states of its threads, as Linux tells them."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return {one.read_text(encoding="utf-8").rpartition(")")[2].split()[0] for one in tasks}

    def empty(self) -> None:
        """Kill it, remove its data, and start it again."""
        self.kill()
        shutil.rmtree(self.data)
        self.start()

    def kill(self) -> None:
        super().kill()
        if self._epmd is not None:
            kill_tree(self._epmd)
            self._epmd = None

    def _launch(self) -> subprocess.Popen[bytes]:
        self.data.mkdir(parents=True, exist_ok=True)
        configuration = (
            f"listeners.tcp.1 = {LOOPBACK}:{self.port}",
            f"default_user = {USER}",
            f"default_pass = {PASSWORD}",
            f"default_vhost = {VHOST}",
            "disk_free_limit.absolute = 10MB",
            "log.file = false",
            "log.console = true",
            *self._lines,
        )
        (self.directory / "rabbitmq.conf").write_text("\n".join(configuration) + "\n")
        (self.directory / "advanced.config").write_text(f"[{{rabbit, [{self._terms}]}}].\n")
        (self.directory / "enabled_plugins").write_text("[].\n")
        env = self._env()
        epmd = ["epmd", "-port", str(self._epmd_port), "-address", LOOPBACK]
        if self._epmd is None:
            self._epmd = spawn(epmd, log=self.log, env=env)
        return spawn([self._program], log=self.log, env=env)

    def _env(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.directory),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.directory / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.data),
            "RABBITMQ_LOG_BASE": str(self.directory),
            "RABBITMQ_CONF_ENV_FILE": str(self.directory / "no-such-file"),
            "RABBITMQ_DIST_PORT": str(choose_port(None)),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            # two processors at most, and none that spins while it waits
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
            # the script then becomes the server, so that a killed parent takes the server with it
            "RUNNING_UNDER_SYSTEMD": "1",
        }

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except (OSError, AMQPError):
            return False
        return True
