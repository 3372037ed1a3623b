"""Brokers of three kinds, with the same few words: what a worker is told, and to lose all messages."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from celery import current_app
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps
from redis import Redis

from tests import servers
from tests.elsewhere import CHANGED, forget_connections_to_the_broker, uses
from tests.rabbitmq import RabbitMQ

KINDS = ("redis", "rabbitmq", "files")


@dataclass(frozen=True)
class Broker:
    """`env` is that of its workers. `empty` loses all messages."""

    env: dict[str, str]
    empty: Callable[[], object]


class WholeFiles(filesystem.Channel):
    """Kombu's own writes into a file that readers see already: one that reads it too early ends its worker."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:
        whole = Path(self.data_folder_out) / f"{time.time_ns()}_{uuid4()}.{queue}.msg"
        written = whole.with_suffix(".written")
        written.write_text(dumps(payload))
        written.rename(whole)


class Files(filesystem.Transport):
    Channel = WholeFiles


def of_files(folder: str) -> dict[str, Any]:
    """The settings of Celery for messages that are files in this folder."""
    TRANSPORT_ALIASES["files"] = f"{__name__}:Files"
    folders = dict.fromkeys(("data_folder_in", "data_folder_out"), folder)
    return {
        "broker_url": "files://",
        "broker_transport_options": {**folders, "control_folder": f"{folder}.control", "polling_interval": 0.02},
    }


@contextmanager
def broker_of(kind: str, folder: Path, redis: Redis) -> Iterator[Broker]:
    """Let this process use a broker of this kind."""
    with ExitStack() as stack:
        match kind:
            case "redis":
                env = stack.enter_context(uses(servers.redis.url, servers.redis.url))
                yield Broker(env, redis.flushall)
            case "rabbitmq":
                server = stack.enter_context(RabbitMQ(folder))
                env = stack.enter_context(uses(servers.redis.url, server.url))
                yield Broker(env, server.empty)
            case _:
                folder.mkdir()
                stack.enter_context(_uses_files(folder))
                env = {"DJANGO_SETTINGS_MODULE": "tests.faults.settings_of_files", "FILES": str(folder)}
                yield Broker(env, lambda: [one.unlink(missing_ok=True) for one in folder.iterdir()])


@contextmanager
def _uses_files(folder: Path) -> Iterator[None]:
    conf = current_app.conf
    before = {name: conf[name] for name in CHANGED}
    found = of_files(str(folder))
    conf.update(
        broker_read_url=found["broker_url"],
        broker_write_url=found["broker_url"],
        broker_transport_options=found["broker_transport_options"],
        broker_use_ssl=None,
    )
    forget_connections_to_the_broker()
    try:
        yield
    finally:
        conf.update(before)
        forget_connections_to_the_broker()
