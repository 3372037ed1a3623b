"""Check the packages beside which our apps run: their versions, and the driver of PostgreSQL.

pip keeps the ranges of the wheel when it installs it, and not when something else is installed later, nor if the
checkout is on the path of a project. docs/package.md tells what psycopg 3 means for a project.
"""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from django.core.checks import CheckMessage, Error
from packaging.requirements import Requirement

#: The `dependencies` of pyproject.toml.
RANGES = (
    "celery>=5.6",
    "kombu>=5.6",
    "amqp>=5.4.2",
    "packaging>=23",
    "redis>=5.2",
    "Django>=5.2,<7",
    "psycopg>=3.2.1",
    "rich>=13.7",
)


def versions() -> Iterator[CheckMessage]:
    for text in RANGES:
        wanted = Requirement(text)
        try:
            installed = version(wanted.name)
        except PackageNotFoundError:  # psycopg is told below; without another, its import has ended the program
            continue
        if not wanted.specifier.contains(installed, prereleases=True):
            yield Error(
                f"{wanted.name} {installed} is installed, and Harbor Refresh needs {text}.",
                hint=f'Type: pip install "{text}"',
                id="harbor_refresh.E004",
            )


def driver() -> Iterator[CheckMessage]:
    """With psycopg2, which Django takes in its place, we could not tell one error of PostgreSQL from another."""
    try:
        import psycopg  # noqa: F401
    except ImportError as exc:
        yield Error(
            f"psycopg 3 cannot be loaded: {str(exc).splitlines()[0]}",
            hint='Type: pip install "psycopg[binary]". Or install libpq, with the packages of the system '
            "(libpq5 of Debian).",
            id="harbor_refresh.E009",
        )
