"""The address of a Redis: what each form means, what Celery makes of it, and which addresses are refused."""

from pathlib import Path
from typing import Any

import pytest

from harbor_refresh.tasks.broker.redis_address import (
    DROPPED,
    Address,
    BadAddress,
    OfCelery,
    Place,
    for_celery,
    read_address,
)

CHECKED = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}


def server(host: str = "h", port: int = 6379, **more: Any) -> Address:
    return Address(places=(Place(host, port),), **more)


READ: dict[str, tuple[str, Address]] = {
    "a host": ("redis://h", server()),
    "a port and a database": ("redis://h:1/2", server(port=1, number=2)),
    "a database as an option": ("redis://h?db=3", server(number=3)),
    "a password": ("redis://:p%40ss@h", server(password="p@ss")),
    "a user of an ACL": ("redis://us%3Aer:p@h", server(username="us:er", password="p")),
    "an address of IPv6": ("redis://[::1]:7/0", server("::1", 7)),
    "Harbor's own": ("redis://harbor:6379/2?idle_timeout_seconds=30", server("harbor", number=2)),
    "all that Harbor's client knows": (f"redis://h?{'&'.join(f'{one}=1' for one in sorted(DROPPED))}", server()),
    "TLS": ("rediss://h", server(tls=CHECKED)),
    "TLS without a check": (
        "rediss://h?ssl_cert_reqs=CERT_NONE",
        server(tls={"ssl_cert_reqs": "none", "ssl_check_hostname": False}),
    ),
    "TLS with another name": (
        "rediss://h?ssl_check_hostname=False",
        server(tls={"ssl_cert_reqs": "required", "ssl_check_hostname": False}),
    ),
    "a certificate of one's own": (
        f"rediss://h?ssl_ca_certs={__file__}&ssl_certfile={__file__}&ssl_keyfile={__file__}",
        server(tls=CHECKED | {"ssl_ca_certs": __file__, "ssl_certfile": __file__, "ssl_keyfile": __file__}),
    ),
    "Sentinels, as Harbor writes them": (
        "redis+sentinel://u:p@h1,h2:5/my%20primary/3?idle_timeout_seconds=30",
        Address(
            places=(Place("h1", 26379), Place("h2", 5)),
            primary="my primary",
            number=3,
            username="u",
            password="p",
        ),
    ),
    "Sentinels with a login and TLS": (
        "rediss+sentinel://h1/main?sentinel_username=s&sentinel_password=t",
        Address(
            places=(Place("h1", 26379),),
            primary="main",
            tls=CHECKED,
            of_sentinels={"username": "s", "password": "t", "ssl": True, **CHECKED},
        ),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_an_address_is_read(name: str) -> None:
    url, address = READ[name]
    assert read_address(url) == address


def test_celery_gets_each_sentinel_with_the_login_and_the_database() -> None:
    assert for_celery("redis+sentinel://u:p%2F@h1,h2:5/main/3?sentinel_password=t") == OfCelery(
        "sentinel://u:p%2F@h1:26379/3;sentinel://u:p%2F@h2:5/3",
        {"master_name": "main", "sentinel_kwargs": {"password": "t"}},
        None,
    )
    assert for_celery("rediss://:p@[::1]/3") == OfCelery("rediss://:p@[::1]:6379/3", {}, CHECKED)


REFUSED = {
    "localhost:6379": "the scheme localhost",
    "h": "no scheme",
    "amqp://h": "the scheme amqp",
    "sentinel://h": "the scheme sentinel",
    "redis://": "a host that cannot be read",
    "redis://:pass[word@h": "a host that cannot be read",
    "redis://h:port": "a host that cannot be read",
    "redis://h:99999": "a host that cannot be read",
    "redis://h:0": "a host that cannot be read",
    "redis+cluster://h": "the scheme redis+cluster",
    "redis+sentinel://h,/main": "a host that cannot be read",
    "redis://h1,h2": "several hosts without +sentinel",
    "redis://h/zero": "a database that is no number",
    "redis://h/1/2": "a path that is too long",
    "redis+sentinel://h": "no name of the primary",
    "redis://h?idle_timeout_second=3": "the unknown option idle_timeout_second",
    "redis://h?ssl_cert_reqs=none": "ssl_cert_reqs without TLS: begin with rediss",
    "rediss://h?ssl_cert_reqs=maybe": "ssl_cert_reqs takes required, optional, none",
    "rediss://h?ssl_check_hostname=no": "ssl_check_hostname takes true or false",
    "rediss://h?ssl_ca_certs=/no/file": "ssl_ca_certs names no file that can be read",
    "redis://h?sentinel_password=p": "sentinel_password without Sentinel",
}


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_cannot_be_used_is_refused_with_the_reason(url: str) -> None:
    with pytest.raises(BadAddress) as caught:
        read_address(url)
    assert str(caught.value) == REFUSED[url]


SECRET = "s3cretword"


@pytest.mark.parametrize(
    "url",
    [f"redis://:{SECRET}@h", f"redis+sentinel://u:{SECRET}@h/m?sentinel_password={SECRET}"],
)
def test_a_password_is_in_no_text_of_an_address(url: str) -> None:
    address = read_address(url)
    assert set(address.secrets) == {SECRET}
    assert SECRET not in f"{address!r} {address}"


@pytest.mark.parametrize(
    "url", [f"redis://:x?{SECRET}@h/0", f"redis://:x@h?{SECRET}x@h/0", f"redis://:{SECRET}/@h:p"]
)
def test_a_reason_holds_no_part_of_a_password_that_was_not_quoted(url: str) -> None:
    with pytest.raises(BadAddress) as caught:
        read_address(url)
    assert SECRET not in str(caught.value)


def test_a_file_is_looked_for_each_time(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    url = f"rediss://h?ssl_ca_certs={file}"
    with pytest.raises(BadAddress):
        read_address(url)
    file.touch()
    assert read_address(url).tls == CHECKED | {"ssl_ca_certs": str(file)}
