"""RabbitMQ as the broker: lengths, the doctor, and connections that break."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from amqp.exceptions import NotFound, RecoverableConnectionError
from celery import current_app
from kombu.exceptions import OperationalError

from harbor_refresh.executions.errors import QueueRefused, QueueUnavailable
from harbor_refresh.local.ports import choose_port
from harbor_refresh.management.commands.alive import judge_workers
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.broker.celery_queues import JOBS, QUEUES, TICKS
from harbor_refresh.tasks.broker.channels import DOWN, waiting
from harbor_refresh.tasks.broker.connecting import PUBLISHERS
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.news.state import look
from tests import servers
from tests.elsewhere import uses
from tests.integration.checks.examined import found
from tests.pages import ROOT
from tests.proxy import HoldsAnswers, Proxy
from tests.rabbitmq import RabbitMQ
from tests.redis_with_tls import Certificates
from tests.waiting import wait_for

#: Slow because RabbitMQ takes seconds to start.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("database", "redis")]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates") / "files")


@pytest.fixture(scope="module")
def tls_port() -> int:
    return choose_port(None)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates, tls_port: int
) -> Iterator[RabbitMQ]:
    """It also has a port with TLS, where it lets no client in without a certificate."""
    lines = (
        f"listeners.ssl.1 = 127.0.0.1:{tls_port}",
        f"ssl_options.cacertfile = {certificates.file('ca.crt')}",
        f"ssl_options.certfile = {certificates.file('server.crt')}",
        f"ssl_options.keyfile = {certificates.file('server.key')}",
        "ssl_options.verify = verify_peer",
        "ssl_options.fail_if_no_peer_cert = true",
    )
    with RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), lines=lines) as server:
        yield server


@pytest.fixture
def broker(server: RabbitMQ) -> RabbitMQ:
    with server.connect() as connection:
        for queue in QUEUES:
            connection.channel().queue_delete(queue)
    return server


def through(proxy: Proxy, server: RabbitMQ) -> str:
    return server.url.replace(f":{server.port}/", f":{proxy.port}/")


def lengths(*queues: str) -> dict[str, int]:
    """A look as the pages have it, which gives up soon; nothing while the broker is down."""
    try:
        return channels.messages(queues or [JOBS])
    except QueueUnavailable:
        return {}


def shows(**counts: int) -> None:
    wait_for(lambda: lengths(*counts) == counts, f"a look that tells {counts}")


def send(count: int, *, queue: str = JOBS, priority: int | None = None) -> None:
    for _ in range(count):
        current_app.send_task("no.such.task", queue=queue, priority=priority, retry=False)


@pytest.fixture
def broker_in_use(broker: RabbitMQ) -> Iterator[RabbitMQ]:
    with uses(servers.redis.url, broker.url):
        yield broker


def test_lengths_are_told_also_of_queues_that_do_not_exist(broker_in_use: RabbitMQ) -> None:
    assert waiting(JOBS) == 0
    send(3)
    send(2, priority=5)
    assert (waiting(JOBS), waiting("no such queue")) == (5, 0)
    send(1)  # the 404 has closed nothing that is needed
    shows(**{TICKS: 0, JOBS: 6})
    everywhere = {queue: 6 if queue == JOBS else 0 for queue in QUEUES}
    wait_for(lambda: dict(look().messages or {}) == everywhere, "a whole look")


def test_the_line_of_the_page_empties_rabbitmq_before_a_restore(broker: RabbitMQ, database: str) -> None:
    page = (ROOT / "docs/howto/upgrade.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ *celery -A harbor_refresh (purge .*)$", page, re.MULTILINE)
    with uses(servers.redis.url, broker.url) as env:
        for queue in QUEUES:
            send(2, queue=queue)
        shows(**dict.fromkeys(QUEUES, 2))
        command = [sys.executable, "-m", "celery", "-A", "harbor_refresh", *line.split()]
        environ = {**os.environ, **env, "DATABASE_URL": servers.postgres.url_for(database)}
        subprocess.run(command, cwd=ROOT, env=environ, check=True, capture_output=True, timeout=120)
        shows(**dict.fromkeys(QUEUES, 0))


def test_the_doctor_finds_rabbitmq_sound(broker_in_use: RabbitMQ) -> None:
    facts = Facts()
    names = ("broker.reachable", "redis.eviction")
    assert {name: found(name, facts) for name in names} == {name: [] for name in names}


@pytest.mark.parametrize("missing", ["configure", "write", "read"])
def test_the_doctor_tells_a_right_that_is_missing(broker: RabbitMQ, missing: str) -> None:
    rights = {"configure": ".*", "write": ".*", "read": ".*"} | {missing: "^$"}
    broker.grant(**rights)
    try:
        with uses(servers.redis.url, broker.url):
            ((_, told),) = found("broker.reachable", Facts())
    finally:
        broker.grant()
    assert told.startswith("RabbitMQ answers and refuses this program. RabbitMQ: ")
    assert "ACCESS_REFUSED" in told


REFUSED = {
    "the password": lambda url: url.replace("harbor:", "harbor:no"),
    "the vhost": lambda url: url.rpartition("/")[0] + "/no-such",
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_doctor_tells_a_rabbitmq_that_refuses_this_program_and_no_password(
    broker: RabbitMQ, what: str
) -> None:
    with uses(servers.redis.url, REFUSED[what](broker.url)):
        ((_, told),) = found("broker.reachable", Facts())
        assert told.startswith("RabbitMQ answers and refuses this program. RabbitMQ: ")
        assert "ss/word" not in told
        with pytest.raises(QueueRefused):
            channels.messages(QUEUES)


def test_an_absent_rabbitmq_is_told_as_absent() -> None:
    with uses(servers.redis.url, f"amqp://127.0.0.1:{choose_port(None)}"):
        ((_, told),) = found("broker.reachable", Facts())
        assert told.startswith("RabbitMQ is down, or does not answer in time. RabbitMQ: ")
        assert set(look().absent) == {"broker"}
        verdict = judge_workers()
        assert (verdict.is_alive, verdict.why.split(",")[0]) == (True, "the broker is down")


def test_the_next_server_of_the_address_is_asked_if_one_is_down(broker: RabbitMQ) -> None:
    gone = broker.url.replace(f":{broker.port}/", f":{choose_port(None)}/")
    with uses(servers.redis.url, f"{gone};{broker.url}"):
        send(1)
        assert waiting(JOBS) == 1
        shows(**{JOBS: 1})


def test_messages_pass_over_tls_to_a_server_that_is_trusted_alone(
    broker: RabbitMQ, certificates: Certificates, tls_port: int
) -> None:
    url = broker.url.replace("amqp:", "amqps:").replace(f":{broker.port}/", f":{tls_port}/")
    # of another name, which is not in the certificate of the server that is there
    gone = url.replace(f"127.0.0.1:{tls_port}/", f"127.0.0.2:{choose_port(None)}/")
    both = ";".join(f"{one}?{certificates.query()}" for one in (gone, url))
    with uses(servers.redis.url, both):
        send(1)
        assert waiting(JOBS) == 1
        shows(**{JOBS: 1})
    for wrong in ({"ssl_ca_certs": certificates.file("another-ca.crt")}, {"ssl_certfile": "", "ssl_keyfile": ""}):
        with uses(servers.redis.url, f"{url}?{certificates.query(**wrong)}"), pytest.raises(DOWN):
            send(1)


def test_the_first_message_after_a_broken_connection_arrives(broker: RabbitMQ) -> None:
    """Kombu notices a closed connection when it is used next, and loses the message for which it is used."""
    proxy = Proxy(broker.port)
    with uses(servers.redis.url, through(proxy, broker)):
        send(1)
        shows(**{JOBS: 1})
        with current_app.pool.acquire(block=True) as connection:
            assert connection.connected
            proxy.cut()
            wait_for(lambda: not connection.connected, "the kernel to know")
        send(1)
        assert waiting(JOBS) == 2
        shows(**{JOBS: 2})
    proxy.close()


def test_a_confirmation_that_comes_late_is_not_taken_for_that_of_the_next_message(broker: RabbitMQ) -> None:
    """Kombu closes a connection of its pool after an error, but none that its owner keeps, as beat does."""
    proxy = HoldsAnswers(broker.port)
    with uses(servers.redis.url, through(proxy, broker)):
        send(1)
        with current_app.connection_for_write() as connection:
            producer = connection.Producer()
            producer.publish({}, routing_key=JOBS)
            proxy.flows.clear()
            with pytest.raises(RecoverableConnectionError):
                producer.publish({}, routing_key=JOBS)
            assert not connection.connected
            proxy.flows.set()
        wait_for(lambda: broker.length(JOBS) == 3, "the message whose confirmation was late")
        send(1)
        assert waiting(JOBS) == 4
    proxy.close()


@pytest.mark.parametrize("is_secured", [False, True], ids=["in the clear", "over TLS"])
def test_a_question_to_a_rabbitmq_that_hangs_ends_with_its_limit(
    broker: RabbitMQ, certificates: Certificates, tls_port: int, is_secured: bool
) -> None:
    """Its connection is closed without another question, which would wait for as long again."""
    proxy = HoldsAnswers(tls_port if is_secured else broker.port)
    url = through(proxy, broker)
    if is_secured:
        url = f"{url.replace('amqp:', 'amqps:')}?{certificates.query()}"
    with uses(servers.redis.url, url):
        assert waiting(JOBS) == 0
        with current_app.pool.acquire(block=True) as connection:
            its: Any = connection
            own = its.connection
            asked: list[Any] = []
            own.send_method = _notes(own.send_method, asked)
        proxy.flows.clear()
        with pytest.raises(DOWN):
            waiting(JOBS)
        with pytest.raises(QueueUnavailable):
            channels.messages([JOBS])
        proxy.flows.set()
        assert (own.connected, asked) == (None, [])
        shows(**{JOBS: 0})
        assert waiting(JOBS) == 0
    proxy.close()


def _notes(send_method: Callable[..., Any], asked: list[Any]) -> Callable[..., Any]:
    """Note what is sent on the connection itself, such as its polite end."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        asked.append(args)
        return send_method(*args, **kwargs)

    return noted


def test_a_message_that_rabbitmq_refuses_counts_as_an_error_of_the_broker(broker_in_use: RabbitMQ) -> None:
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    with broker_in_use.connect() as connection:
        connection.channel().queue_declare(JOBS, durable=True, auto_delete=False, arguments=full)
    with current_app.connection_for_write() as connection:
        producer = connection.Producer()
        producer.publish({}, routing_key=JOBS)
        with pytest.raises(DOWN):
            producer.publish({}, routing_key=JOBS)
        assert connection.connected
        with pytest.raises(OperationalError, match="RabbitMQ refused a message"):
            producer.publish({}, routing_key=JOBS, retry=True, retry_policy=PUBLISHERS)
        assert connection.connected
    assert broker_in_use.length(JOBS) == 1


def test_a_queue_whose_node_is_down_counts_as_there(broker_in_use: RabbitMQ) -> None:
    class OfADownNode:
        def queue_declare(self, queue: str, *, passive: bool) -> None:
            raise NotFound(
                f"NOT_FOUND - home node 'b' of durable queue '{queue}' in vhost '/' is down", (50, 10), ""
            )

    with pytest.raises(DOWN):
        channels.length(OfADownNode(), JOBS)
