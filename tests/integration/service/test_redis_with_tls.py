"""Redis over TLS, with users of its ACL: the queue, the broker, and what is refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from kombu import Connection

from harbor_refresh.executions.errors import QueueRefused, QueueUnavailable
from harbor_refresh.tasks.broker import redis_transport
from harbor_refresh.tasks.broker.redis_address import for_celery
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import connect
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.redis_with_tls import Certificates, RedisWithTLS, SentinelWithTLS

LOGIN = "refresh:a%20secret@"
TIMEOUT = 5.0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls") / "certificates")


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> Iterator[RedisWithTLS]:
    users = (
        "--user",
        "refresh",
        "on",
        "allcommands",
        "~*",
        "&*",
        ">a secret",
        "--user",
        "reader",
        "on",
        ">r",
        "~*",
        "+ping",
    )
    with RedisWithTLS(certificates.directory / "redis", certificates, extra=users) as server:
        yield server


def queue_of(url: str) -> ExecutionQueue:
    return ExecutionQueue(refresh_settings(), connect(url, TIMEOUT, tries=4), connect(url, TIMEOUT, tries=1))


def test_the_queue_works_over_tls_with_a_user_and_a_certificate(server: RedisWithTLS) -> None:
    queue = queue_of(server.address(login=LOGIN))
    queue.mark(["1:A"])
    assert not queue.lost(["1:A"])
    assert queue.claim("me", 1).claim.members == ("1:A",)


def test_messages_of_the_broker_pass_over_tls(server: RedisWithTLS) -> None:
    broker = for_celery(server.address(login=LOGIN))
    with (
        Connection(broker.url, ssl=broker.tls, transport=redis_transport.Transport) as connection,
        connection.SimpleQueue("a queue") as queue,
    ):
        queue.put("one")
        message = queue.get(timeout=120)
        message.ack()
    assert message.payload == "one"


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an authority that is not trusted": (
        {"ssl_ca_certs": "another-ca.crt"},
        QueueUnavailable,
        "CERTIFICATE_VERIFY",
    ),
    "no authority at all": ({"ssl_ca_certs": ""}, QueueUnavailable, "CERTIFICATE_VERIFY"),
    "no certificate of the client": ({"ssl_certfile": "", "ssl_keyfile": ""}, QueueUnavailable, "ConnectionError"),
    "a wrong password": ({"login": "refresh:wrong@"}, QueueRefused, "Authentication|WRONGPASS|invalid"),
    "a user without the rights": ({"login": "reader:r@"}, QueueRefused, "NoPermission"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_right_is_refused(name: str, server: RedisWithTLS, certificates: Certificates) -> None:
    changed, error, words = REFUSED[name]
    files = {key: certificates.file(value) if value.endswith(".crt") else value for key, value in changed.items()}
    url = server.address(**({"login": LOGIN} | files))
    with pytest.raises(error, match=words):
        queue_of(url).mark(["1:A"])


def test_a_certificate_of_another_name_is_refused_unless_names_are_not_checked(certificates: Certificates) -> None:
    with RedisWithTLS(certificates.directory / "elsewhere", certificates, server="elsewhere") as server:
        with pytest.raises(QueueUnavailable, match="CERTIFICATE_VERIFY"):
            queue_of(server.address()).mark(["1:A"])
        queue = queue_of(server.address(ssl_check_hostname="false"))
        queue.mark(["1:A"])
        assert not queue.lost(["1:A"])


def test_a_sentinel_is_asked_over_tls_with_a_login_of_its_own(
    server: RedisWithTLS, certificates: Certificates
) -> None:
    lines = (
        f"sentinel monitor main 127.0.0.1 {server.port} 1",
        "sentinel auth-user main refresh",
        'sentinel auth-pass main "a secret"',
        "requirepass of-sentinel",
    )
    with SentinelWithTLS(certificates.directory / "sentinel", certificates, extra=lines) as sentinel:
        named = {"login": LOGIN, "scheme": "rediss+sentinel", "path": "/main/0"}
        url = sentinel.address(**named, sentinel_password="of-sentinel")
        queue_of(url).mark(["2:A"])
        assert not queue_of(url).lost(["2:A"])
        broker = for_celery(url)
        options = {**broker.options, "socket_timeout": TIMEOUT}
        with (
            Connection(
                broker.url, ssl=broker.tls, transport_options=options, transport=redis_transport.SentinelTransport
            ) as connection,
            connection.SimpleQueue("another queue") as queue,
        ):
            queue.put("one")
            assert queue.get(timeout=120).payload == "one"
        with pytest.raises(QueueUnavailable, match="AuthenticationError"):
            queue_of(sentinel.address(**named)).mark(["3:A"])
