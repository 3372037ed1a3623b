"""A broker that is nothing but messages: kombu's filesystem transport."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from celery import current_app
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps

from tests.elsewhere import CHANGED, forget_connections_to_the_broker


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
def uses_files(folder: Path) -> Iterator[dict[str, str]]:
    """Let this process use that broker. Yield the environment of a worker that does the same."""
    folder.mkdir()
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
        yield {"DJANGO_SETTINGS_MODULE": "tests.faults.settings_of_files", "FILES": str(folder)}
    finally:
        conf.update(before)
        forget_connections_to_the_broker()
