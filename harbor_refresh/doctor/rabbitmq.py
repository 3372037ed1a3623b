"""What the checks of the broker look at if it is RabbitMQ."""

from collections.abc import Iterator
from typing import Any

from harbor_refresh.doctor.check import Problem, warning
from harbor_refresh.doctor.facts import REDIS_SECONDS
from harbor_refresh.executions.errors import QueueRefused, QueueUnavailable
from harbor_refresh.tasks.broker.amqp_transport import Transport
from harbor_refresh.tasks.broker.rabbitmq import Glance

#: RabbitMQ's own `consumer_timeout`: it takes back what a worker has not acknowledged for so long. It tells no
#: client how long it waits.
CONSUMER_TIMEOUT = 1_800
NEEDED = {
    "confirm_publish": "a RabbitMQ that is killed loses messages without a word",
    "read_timeout": "a RabbitMQ that hangs holds up each process that reports",
    "write_timeout": "a RabbitMQ that hangs holds up each process that reports",
}


def reachable() -> Iterator[Problem]:
    glance = Glance(REDIS_SECONDS)
    try:
        glance.try_rights()
    except QueueRefused as exc:
        yield Problem(
            f"RabbitMQ answers and refuses this program. {exc}",
            "Correct the user, the password and the vhost in CELERY_BROKER_URL, or grant the rights: rabbitmqctl "
            "set_permissions -p VHOST USER '.*' '.*' '.*'",
        )
    except QueueUnavailable as exc:
        yield Problem(
            f"RabbitMQ is away, or does not answer in time. {exc}",
            "Start it, or correct CELERY_BROKER_URL. Look with: rabbitmq-diagnostics check_port_connectivity",
        )
    finally:
        glance.close()


def waits_for(limits: dict[str, float], told: float) -> Iterator[Problem]:
    """Compare the times that tasks may take with the time after which RabbitMQ delivers again. `told` is that time
    if the operator has raised it in the server, and says so."""
    seconds = max(CONSUMER_TIMEOUT, told)
    for name, limit in sorted(limits.items()):
        if limit > seconds:
            needed = limit + 60
            yield warning(
                f"{name} may run for {limit:g} s, and RabbitMQ delivers its message again after {seconds:g} s "
                "(consumer_timeout): it would run twice at once.",
                f"In rabbitmq.conf: consumer_timeout = {needed * 1_000:.0f}; and tell it by "
                f"REFRESH_VISIBILITY_TIMEOUT_SECONDS={needed:g}",
            )


def transport(options: dict[str, Any], transport_class: type[Any]) -> Iterator[Problem]:
    for name, cost in NEEDED.items():
        if not options.get(name):
            yield Problem(
                f"The option {name} of the broker's transport is not set: {cost}.",
                "In the settings: CELERY_BROKER_TRANSPORT_OPTIONS as in settings/base.py",
            )
    if not issubclass(transport_class, Transport):
        yield warning(
            f"Celery uses the transport {transport_class.__module__}, with which the first message of each "
            "process after a restart of RabbitMQ fails.",
            "Start Celery with `-A harbor_refresh`.",
        )
