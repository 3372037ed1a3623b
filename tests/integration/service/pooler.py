"""A PgBouncer in transaction mode before the PostgreSQL of the run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from django.db import connection

from harbor_refresh.local.checkout import server_account
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.process import kill_tree, spawn
from tests import servers
from tests.programs import needs
from tests.waiting import wait_for

if TYPE_CHECKING:
    from subprocess import Popen

#: The accounts that it lets in, without a password, as PostgreSQL does.
USERS = ("postgres", "refresher")
#: What a program needs beside DATABASE_URL.
POOLED = {"DATABASE_POOLED": "true"}


def folder_for(database: str) -> Path:
    """Make a folder that another account can enter."""
    directory = servers.directory / f"pooler-of-{database}"
    directory.mkdir(mode=0o755)
    return directory


class PgBouncer:
    """`ignores`: startup parameters that it takes and does not pass on."""

    def __init__(self, directory: Path, ignores: str = "") -> None:
        self.port = choose_port()
        self._directory = directory / f"pgbouncer-{self.port}"
        self._ignores = ignores
        self._process: Popen[bytes] | None = None

    def start(self) -> None:
        program = needs("pgbouncer")
        account = server_account()  # it does not run as root
        self._directory.mkdir()
        self._directory.chmod(0o755)
        users = self._directory / "users.txt"
        users.write_text("".join(f'"{user}" ""\n' for user in USERS))
        config = self._directory / "pgbouncer.ini"
        config.write_text(
            "[databases]\n"
            f"* = host={LOOPBACK} port={servers.postgres.port}\n"
            "[pgbouncer]\n"
            f"listen_addr = {LOOPBACK}\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\nadmin_users = postgres\n"
            f"pool_mode = transaction\ndefault_pool_size = 4\nignore_startup_parameters = {self._ignores}\n"
        )
        log = self._directory / "log"
        self._process = spawn([program, config], log=log, account=account)
        wait_for(self._answers, "PgBouncer to answer", log=log)

    def stop(self) -> None:
        if self._process:
            kill_tree(self._process)

    def url(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@{LOOPBACK}:{self.port}/{database}"

    def administer(self, command: str) -> None:
        with psycopg.connect(self.url("pgbouncer"), autocommit=True) as console:
            console.execute(command.encode())

    def _answers(self) -> bool:
        try:
            self.administer("SHOW VERSION")
        except psycopg.Error:
            return False
        return True


@contextmanager
def used_here(bouncer: PgBouncer) -> Iterator[None]:
    """Let this process reach its database through it, as a program with DATABASE_POOLED=true does."""
    settings = connection.settings_dict
    before = dict(settings)
    options = {name: value for name, value in settings["OPTIONS"].items() if name != "options"}
    connection.close()
    settings.update(HOST=LOOPBACK, PORT=str(bouncer.port), OPTIONS=options, DISABLE_SERVER_SIDE_CURSORS=True)
    try:
        yield
    finally:
        connection.close()
        settings.update(before)
