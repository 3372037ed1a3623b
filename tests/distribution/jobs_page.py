"""docs/jobs.md, "In a project of your own": what other pages mean by a project that has been made ready."""

from pathlib import Path
from urllib.parse import urlsplit

from tests import pages, servers
from tests.distribution.environments import Environment

FIVE_MINUTES, READY = "Five minutes from an existing Celery project", "In a project of your own"
#: The address of Redis on the page, and one where nothing listens.
REDIS = "redis://localhost:6379"
NO_REDIS = "redis://nothing.listens.here:1"


def blocks(title: str, language: str) -> list[str]:
    """The code of a section of the page."""
    return pages.codes(pages.section(pages.read("docs/jobs.md"), title), language)


def lines(title: str) -> list[str]:
    return pages.lines(pages.section(pages.read("docs/jobs.md"), title))


def postgres_of_the_test() -> dict[str, str]:
    """The variables of PostgreSQL's client: the DATABASES of the page name no server."""
    server = urlsplit(servers.postgres.url)
    return {"PGHOST": str(server.hostname), "PGPORT": str(server.port), "PGUSER": str(server.username)}


def begin_project(folder: Path, place: Environment) -> None:
    """Make a new project, and write into it what the page says. It reaches no Redis: for tests of its jobs."""
    folder.mkdir()
    place.run("-m", "django", "startproject", "shop", folder, cwd=folder)
    apps, new, _, celery, package, *_ = blocks(READY, "python")
    with (folder / "shop/settings.py").open("a", encoding="utf-8") as settings:
        settings.write("\n" + apps + new.replace(REDIS, NO_REDIS))
    (folder / "shop/celery.py").write_text(celery, encoding="utf-8")
    (folder / "shop/__init__.py").write_text(package, encoding="utf-8")
