"""docs/start/project.md and docs/howto/existing_project.md: how a project gets our apps."""

from pathlib import Path
from urllib.parse import urlsplit

from tests import pages, servers
from tests.distribution.environments import Environment

START, EXISTING = pages.read("docs/start/project.md"), pages.read("docs/howto/existing_project.md")
#: The address of Redis on the pages, and one where nothing listens.
REDIS = "redis://localhost:6379"
NO_REDIS = "redis://nothing.listens.here:1"


def postgres_of_the_test() -> dict[str, str]:
    """The variables of PostgreSQL's client: the DATABASES of the page name no server."""
    server = urlsplit(servers.postgres.url)
    return {"PGHOST": str(server.hostname), "PGPORT": str(server.port), "PGUSER": str(server.username)}


def write_files(folder: Path, redis: str) -> None:
    """Write the files of the tutorial into a new project. Its settings come behind those that Django made."""
    for name, text in pages.files(START).items():
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write("\n" + text.replace(REDIS, redis))


def begin_project(folder: Path, place: Environment) -> None:
    """Make a new project by the tutorial. It reaches no Redis: for tests of its jobs."""
    folder.mkdir()
    place.run("-m", "django", "startproject", "shop", folder, cwd=folder)
    write_files(folder, NO_REDIS)
