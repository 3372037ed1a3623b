"""What the wheel carries of the checkout, and where it puts it.

The two apps are carried whole. Each part of `harbor_refresh/` is in one of the two tables below, so that a new
part is neither published nor forgotten by accident.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from distribution.errors import Refused

NAMESPACE = "harbor_refresh"
#: They stand at the top of the checkout, and below the namespace in the wheel.
APPS = ("executions", "tasks")

#: Parts of the service that a host can use by themselves, and for what.
CARRIED = {
    "__init__.py": "the public names",
    "api.py": "the HTTP API among the host's own addresses",
    "api_description.py": "the HTTP API",
    "api_examples.py": "the HTTP API",
    "client.py": "programs that report the status of tasks",
    "consumer.py": "Celery's consumer, which sends the events of tasks many in one message",
    "half_results.py": "results of pool processes that the consumer has read half",
    "doctor": "manage.py doctor",
    "flower": "Flower, with the login of the host's admin",
    "management/__init__.py": "manage.py doctor and alive",
    "management/commands/__init__.py": "manage.py doctor and alive",
    "management/commands/alive.py": "manage.py alive, for the probes of containers",
    "management/commands/doctor.py": "manage.py doctor",
    "monitoring": "/metrics and the probes, by a middleware",
    "py.typed": "type checkers, which read our annotations if it is there",
    "redis_transport.py": "kombu's transport, mended for a Redis that fails",
    "tasks_backend.py": "Django's Tasks framework, whose tasks run as tracked jobs",
    "testing": "jobs in the tests of a project",
}
#: Parts of the service alone, and what they are for.
LEFT_OUT = {
    "admin": "replaces the admin's pages of users, groups and beat's schedule",
    "api_page.py": "writes docs/api.md",
    "apps.py": "makes the service's Celery app",
    "arguments.py": "manage.py attach",
    "attach": "moves a running Harbor to the service",
    "celery.py": "the service's Celery app",
    "compression.py": "a middleware of the service",
    "dashboard": "the first page of the service's admin",
    "invariants.py": "tests and the soak",
    "local": "`make up` and its servers",
    "logs": "the service's log",
    "management/commands/api_docs.py": "writes docs/api.md",
    "management/commands/attach.py": "manage.py attach",
    "management/verbs": "manage.py attach",
    "not_found.py": "the service's answer to each unknown address",
    "redis_at_start.py": "the service's Celery app",
    "redis_cache.py": "the service's cache",
    "roles.py": "the service's groups of users",
    "settings_check.py": "the service's Celery app",
    "sql": "tests and the soak",
    "static": "the dashboard and the page of the API",
    "templates": "replace templates of other packages",
    "tracing": "connected by the service's app",
    "urls.py": "the service's addresses",
    "web_worker.py": "the service's web process",
    "wsgi.py": "the service's web process",
}
#: A file of another kind is refused: it may be one that belongs into no wheel.
KINDS = {".css", ".html", ".js", ".lua", ".py", ".sql", ".svg", ".typed"}


@dataclass(frozen=True)
class File:
    """A file of the checkout, and its place in the wheel."""

    source: Path
    place: Path

    @property
    def is_python(self) -> bool:
        return self.source.suffix == ".py"


def files(root: Path) -> list[File]:
    """Return what the wheel carries of the checkout at `root`."""
    found = [File(path, NAMESPACE / path.relative_to(root)) for app in APPS for path in below(root / app)]
    found += [File(path, path.relative_to(root)) for path in _of_the_service(root / NAMESPACE)]
    if unknown := [f"{one.source}: a file of a kind that is not in KINDS" for one in found if _is_unknown(one)]:
        raise Refused("\n".join(unknown))
    return sorted(found, key=lambda one: one.place)


def below(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def _is_unknown(file: File) -> bool:
    return file.source.suffix not in KINDS


def _of_the_service(folder: Path) -> Iterator[Path]:
    every = CARRIED.keys() | LEFT_OUT.keys()
    used: set[str] = set()
    for path in below(folder):
        relative = path.relative_to(folder)
        named = every & {one.as_posix() for one in (relative, *relative.parents)}
        if len(named) != 1:
            raise Refused(f"{NAMESPACE}/{relative.as_posix()}: in {len(named)} of the tables CARRIED and LEFT_OUT")
        used |= named
        if named <= CARRIED.keys():
            yield path
    if gone := sorted(every - used):
        raise Refused(f"CARRIED or LEFT_OUT names what is not in {NAMESPACE}/: {', '.join(gone)}")
