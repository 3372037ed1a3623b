"""What the scripts of the image know: programs, health checks, variables with their defaults."""

import re
from functools import cache

from harbor_refresh.executions.news.deliveries.deliverer import RUN_SECONDS
from harbor_refresh.tasks.conf.pacing import SWEEP_SECONDS
from harbor_refresh.tasks.jobs.running import writer
from harbor_refresh.tasks.pipeline import per_process
from harbor_refresh.web.worker import IN_MEMORY
from settings.base import DATA_UPLOAD_MAX_MEMORY_SIZE, SESSION_OPTIONS
from tests.deploy.dockerfile import DOCKERFILE
from tests.unit.test_docs import variables

START = (DOCKERFILE.parent / "start.sh").read_text(encoding="utf-8")
HEALTH = (DOCKERFILE.parent / "health.sh").read_text(encoding="utf-8")
#: Settings that production demands. Each may also come from the file that NAME_FILE names.
REQUIRED = ("SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL")


def _cases(script: str) -> set[str]:
    """The words that the last `case` of a script takes."""
    labels = re.findall(r"^([a-z][a-z |]*)\)", script.rsplit("\ncase ", 1)[1], re.MULTILINE)
    return {word for label in labels for word in label.split(" | ")}


PROGRAMS = _cases(START)
CHECKS = _cases(HEALTH)
#: Variables of the image, with their defaults.
OF_THE_IMAGE = dict(re.findall(r"\$\{([A-Z][A-Z_]+):[-+]([^}]*)\}", START + HEALTH))
#: Of Flower's options, those that the image's scripts or the service's Flower read.
OF_FLOWER = {"FLOWER_BASIC_AUTH", "FLOWER_READ_ONLY", "FLOWER_MAX_TASKS", "FLOWER_TASKS_COLUMNS"}


def seconds_to_end() -> dict[str, float]:
    """How long each program takes at most from SIGTERM to its end, without jobs.

    A worker ends its task: the longest of ours work so long, and may then wait for a lock. After that the ends
    of jobs are written and reported. A web process answers its requests. The others end at once, after a
    statement at most.
    """
    lock = float(SESSION_OPTIONS["lock_timeout"].removesuffix("s"))
    task = lock + max(SWEEP_SECONDS, RUN_SECONDS)
    (graceful,) = re.findall(r"--graceful-timeout (\d+)", START)
    return {
        "worker": task + writer.STOP_SECONDS + per_process.STOP_SECONDS,
        "web": float(graceful),
        "beat": lock,
        "flower": lock,
    }


#: The largest body that a web process takes, and how many of them /tmp holds at least.
BODY, BODIES = DATA_UPLOAD_MAX_MEMORY_SIZE + 2**20, 25
#: Measured: a process that has answered each page, and the largest reports while a thread applies them.
IDLE, READ = 100 * 2**20, 8 * BODY


def size_of(text: str) -> int:
    """Return the bytes of `64Mi` as Kubernetes writes them, or `64m` as Compose does."""
    found = re.fullmatch(r"(\d+)([mg])i?", text.lower())
    assert found, text
    return int(found[1]) * 2 ** {"m": 20, "g": 30}[found[2]]


def lacks_of_web(tmp: str, memory: str) -> list[str]:
    """Say what the web process lacks with a /tmp and a limit of memory of these sizes. The files in /tmp count as
    memory. Each connection may have the beginning of a body in memory as well."""
    processes, threads = (int(OF_THE_IMAGE[name]) for name in ("WEB_WORKERS", "WEB_THREADS"))
    given = re.search(r"--worker-connections (\d+)", START)
    connections = int(given[1]) if given else 1_000  # as gunicorn has it
    taken = processes * (IDLE + threads * READ + connections * IN_MEMORY)
    lacks = {"tmp": BODIES * BODY - size_of(tmp), "memory": taken + size_of(tmp) - size_of(memory)}
    return [f"{name}: {size >> 20} MiB" for name, size in lacks.items() if size > 0]


@cache
def known_variables() -> frozenset[str]:
    of_settings = {"DJANGO_SETTINGS_MODULE", *variables()}
    return frozenset({*of_settings, *(f"{name}_FILE" for name in of_settings), *OF_THE_IMAGE, *OF_FLOWER})


def missing(given: set[str]) -> list[str]:
    """Return the required settings that are given neither directly nor as a file."""
    return [name for name in REQUIRED if not given & {name, f"{name}_FILE"}]
