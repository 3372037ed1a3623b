"""The address of RabbitMQ: what each form means, what Celery makes of it, and which addresses are refused."""

import ssl
from typing import Any

import pytest
from kombu import Connection

from harbor_refresh.tasks.broker.connecting import (
    OF_REDIS,
    PUBLISHERS,
    broker_of_celery,
    check_broker,
    is_amqp,
)
from harbor_refresh.tasks.broker.redis_address import BadAddress

CHECKED = {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": None}


def server(host: str = "h", port: int = 5672, vhost: str = "/", **login: str) -> tuple[Any, ...]:
    return host, port, vhost, login.get("username"), login.get("password")


READ: dict[str, tuple[str, list[tuple[Any, ...]], dict[str, Any] | None]] = {
    "a host": ("amqp://h", [server()], None),
    "a port": ("amqp://h:1/", [server(port=1)], None),
    "a vhost": ("amqp://h/refresh", [server(vhost="refresh")], None),
    "a vhost with a slash": ("amqp://h/%2Fa%2Fb", [server(vhost="/a/b")], None),
    "the vhost / as Celery has it": ("amqp://h//", [server()], None),
    "a login": ("amqp://us%40er:p%2F%3B%23@h", [server(username="us@er", password="p/;#")], None),
    "an address of IPv6": ("amqp://[::1]:7", [server("::1", 7)], None),
    "TLS": ("amqps://h", [server(port=5671)], CHECKED),
    "TLS with a certificate of one's own": (
        f"amqps://h?ssl_ca_certs={__file__}&ssl_check_hostname=false",
        [server(port=5671)],
        {"ca_certs": __file__, "cert_reqs": ssl.CERT_REQUIRED},
    ),
    "the name that Celery has for its library": ("pyamqp://h/refresh", [server(vhost="refresh")], None),
    "a cluster": (
        "amqp://u:p@h1/v;amqp://u:p@h2:5/v",
        [server(h, p, username="u", password="p", vhost="v") for h, p in (("h1", 5672), ("h2", 5))],
        None,
    ),
    "a cluster whose first server has another vhost": (
        "amqp://h1/v;amqp://h2",
        [server("h1", vhost="v"), server("h2")],
        None,
    ),
}


@pytest.mark.parametrize("name", READ)
def test_celery_gets_the_same_address_in_its_own_form(name: str) -> None:
    """Kombu reads each server of the address as it was meant, also after it has tried another."""
    url, servers, tls = READ[name]
    assert is_amqp(url)
    broker = broker_of_celery(url, 300)
    assert broker.tls == tls
    with Connection(broker.url) as read:
        for number, meant in enumerate(servers):
            if number:
                read.maybe_switch_next()
            assert (read.hostname, read.port, read.virtual_host, read.userid, read.password) == meant
        assert len(read.alt or [broker.url]) == len(servers)


def test_each_kind_of_broker_gets_the_options_of_its_own_client() -> None:
    of_rabbitmq, of_redis = broker_of_celery("amqp://h", 300), broker_of_celery("redis://h", 300)
    assert of_rabbitmq.options["confirm_publish"] is True
    assert (of_rabbitmq.options.keys() & of_redis.options.keys(), of_rabbitmq.tls) == (PUBLISHERS.keys(), None)
    assert of_redis.options == {"visibility_timeout": 300, **OF_REDIS, **PUBLISHERS}
    behind_sentinel = broker_of_celery("redis+sentinel://h/main", 300).options
    assert (behind_sentinel["master_name"], behind_sentinel["socket_timeout"]) == ("main", 5)


REFUSED = {
    "amqp://": "a host that cannot be read",
    "amqp:///vhost": "a host that cannot be read",
    "amqp://h:99999": "a host that cannot be read",
    "amqp://a,b": "several hosts: each needs a whole address, with ; between them",
    "amqp://user@h": "a user without a password, or a password without a user",
    "amqp://:secret@h": "a user without a password, or a password without a user",
    "amqp://u:p#q@h": "a # that is not written as %23",
    "amqp://h?heartbeat=1": "the unknown option heartbeat",
    "amqp://h?db=1": "the unknown option db",
    "amqp://u:12?q@h": "an option that cannot be read",
    "amqp://h?ssl_cert_reqs=none": "ssl_cert_reqs without TLS: begin with amqps",
    "amqps://h?ssl_ca_certs=/no/such": "ssl_ca_certs names no file that can be read",
    "amqps://h?ssl_cert_reqs=maybe": "ssl_cert_reqs takes required, optional, none",
    "amqp://h;redis://h": "the scheme redis",
    "amqp://h;h2": "no scheme",
    "amqp://a;amqps://b": "servers that differ in their TLS",
}


@pytest.mark.parametrize("url", REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_reason(url: str) -> None:
    with pytest.raises(BadAddress) as caught:
        check_broker(url)
    assert str(caught.value) == REFUSED[url]
