"""The embedded PostgreSQL."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from harbor_refresh.local.binaries import find_postgres
from harbor_refresh.local.checkout import server_account
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.process import end_leftover, spawn, tail
from harbor_refresh.local.server import EmbeddedServer

ROLE = "postgres"
_DEFAULTS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class EmbeddedPostgres(EmbeddedServer):
    """A PostgreSQL with one empty database, UTF-8 and UTC, that trusts connections from loopback.

    `parameters` are server parameters over the defaults. If we are root, it runs as `nobody`, so this account must
    be able to enter the parent of `directory`.
    """

    name = "PostgreSQL"
    stop_signal = signal.SIGINT

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        *,
        parameters: Mapping[str, str] | None = None,
        database: str = "harbor_refresh",
    ) -> None:
        super().__init__(directory, port)
        self.parameters = {**_DEFAULTS, **(parameters or {})}
        self.database = database
        self._account = server_account()

    @property
    def url(self) -> str:
        return self.url_for(self.database)

    def url_for(self, database: str) -> str:
        return f"postgresql://{ROLE}@{LOOPBACK}:{self.port}/{database}"

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _launch(self) -> subprocess.Popen[bytes]:
        programs = find_postgres()
        if not self._data.exists():
            self._make_data(programs)
        end_leftover(self._data / "postmaster.pid", self._data, signal.SIGINT)
        parameters = {**_counting_statements(programs), **self.parameters, "port": str(self.port)}
        words = [word for name, value in parameters.items() for word in ("-c", f"{name}={value}")]
        argv: list[str | Path] = [programs / "postgres", "-D", self._data, *words]
        return spawn(argv, log=self.log, death_signal=signal.SIGINT, account=self._account)

    def _make_data(self, programs: Path) -> None:
        """Run `initdb` beside the data's place and rename, so that the data are either complete or absent."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._account:
            self.directory.chmod(self.directory.stat().st_mode | 0o111)
        making = self.directory / "data.making"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        if self._account:
            os.chown(making, self._account.pw_uid, self._account.pw_gid)
        locale = "C.UTF-8" if sys.platform == "linux" else "C"
        options = ["-U", ROLE, "-A", "trust", "-E", "UTF8", f"--locale={locale}", "--no-sync"]
        words: list[str | Path] = [programs / "initdb", "-D", making, *options]
        if spawn(words, log=self.log, death_signal=signal.SIGKILL, account=self._account).wait() != 0:
            raise LocalError(
                f"initdb could not make a database in {making}. Its log ({self.log}) ends:\n{tail(self.log)}"
            )
        making.rename(self._data)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.url_for("postgres"), connect_timeout=2) as connection:
                # It must serve our data, because another server could have taken the port.
                shown = connection.execute("SHOW data_directory").fetchone()
        except psycopg.Error:
            return False
        return shown is not None and Path(shown[0]).resolve() == self._data.resolve()

    def _once_up(self) -> None:
        with psycopg.connect(self.url_for("postgres"), autocommit=True) as connection:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(known, [self.database]).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(self.database)))


def _counting_statements(programs: Path) -> dict[str, str]:
    """Preload `pg_stat_statements` where this PostgreSQL has it. `CREATE EXTENSION` is left to the caller."""
    library = "pg_stat_statements.so" if sys.platform == "linux" else "pg_stat_statements.dylib"
    folders = (programs.parent / "lib", programs.parent / "lib" / "postgresql")
    if any((folder / library).exists() for folder in folders):
        return {"shared_preload_libraries": "pg_stat_statements"}
    return {}
