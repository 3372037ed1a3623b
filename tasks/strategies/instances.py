"""The number of this worker among the instances of the `hash` design."""

import re
import socket
from typing import Any, NamedTuple

from celery import signals

from harbor_refresh.executions.errors import NoInstance
from harbor_refresh.tasks.conf import refresh_settings


class Instance(NamedTuple):
    number: int
    total: int


def this_instance() -> Instance:
    """Read the number from the settings, or without CORE_INSTANCE_ID from the ordinal of a StatefulSet's host
    name (`harbor-core-3`). Raises NoInstance if there is no number from 0 to the total - 1."""
    conf = refresh_settings()
    host = socket.gethostname()
    total = conf.instance_total
    if total is None:
        raise NoInstance(
            "CORE_INSTANCE_TOTAL: got nothing, takes how many instances there are. REFRESH_STRATEGY=hash needs it."
        )
    ordinal = re.search(r"-([0-9]{1,9})$", host)
    number = conf.instance_id if conf.instance_id is not None else ordinal and int(ordinal[1])
    takes = f"takes a whole number from 0 to {total - 1}, CORE_INSTANCE_TOTAL being {total}"
    if number is None:
        raise NoInstance(f"CORE_INSTANCE_ID: got nothing, and the host name {host!r} ends in no ordinal; {takes}.")
    if number >= total:
        origin = "" if conf.instance_id is not None else f" from the host name {host!r}"
        raise NoInstance(f"CORE_INSTANCE_ID: got '{number}'{origin}, {takes}.")
    return Instance(number, total)


def refuse_without_a_number(**_: Any) -> None:
    """End the worker before it starts, if it has no number."""
    conf = refresh_settings()
    if conf.strategy != "hash" or conf.in_process:
        return
    try:
        this_instance()
    except NoInstance as exc:
        raise SystemExit(str(exc)) from None


def connect() -> None:
    signals.celeryd_init.connect(refuse_without_a_number, dispatch_uid="instances.refuse")
