"""What the doctor says about the settings of a RabbitMQ."""

from kombu.transport.pyamqp import Transport as KombusOwn

from harbor_refresh.doctor import rabbitmq
from harbor_refresh.doctor.check import Level
from harbor_refresh.tasks.broker.amqp_transport import SSLTransport, Transport
from harbor_refresh.tasks.broker.connecting import OF_RABBITMQ


def test_a_task_may_take_as_long_as_rabbitmq_waits_or_as_long_as_the_operator_says_that_it_waits() -> None:
    limits = {"short": 1_800.0, "long": 1_801.0, "longest": 9_000.0}
    assert [one.what.split()[0] for one in rabbitmq.waits_for(limits, 0)] == ["long", "longest"]
    (told,) = rabbitmq.waits_for(limits, 7_200)
    assert told.level is Level.WARNING
    assert told.what == (
        "longest may run for 9000 s, and RabbitMQ delivers its message again after 7200 s (consumer_timeout): it "
        "would run twice at once."
    )
    assert told.todo == (
        "In rabbitmq.conf: consumer_timeout = 9060000; and tell it by REFRESH_VISIBILITY_TIMEOUT_SECONDS=9060"
    )
    assert list(rabbitmq.waits_for(limits, 9_060)) == []


def test_each_option_without_which_messages_are_lost_or_programs_held_up_is_told() -> None:
    for transport in (Transport, SSLTransport):
        assert list(rabbitmq.transport(OF_RABBITMQ, transport)) == []
    told = [one.what.split(" of ")[0] for one in rabbitmq.transport({}, Transport)]
    assert told == [f"The option {name}" for name in ("confirm_publish", "read_timeout", "write_timeout")]


def test_kombus_own_transport_is_told() -> None:
    (told,) = rabbitmq.transport(OF_RABBITMQ, KombusOwn)
    assert (told.level, told.todo) == (Level.WARNING, "Start Celery with `-A harbor_refresh`.")
    assert "kombu.transport.pyamqp" in told.what
