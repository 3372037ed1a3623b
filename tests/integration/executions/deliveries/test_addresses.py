"""Which addresses webhooks may reach."""

from ipaddress import ip_address

import pytest
from pytest_django import Settings

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.news.deliveries import subscriptions
from harbor_refresh.executions.news.deliveries.addresses import is_allowed, networks, refuse_unusable
from harbor_refresh.executions.news.deliveries.answers import Answer
from tests.integration.executions.deliveries.receiver import Receiver

PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8", "64:ff9b::808:808"]
FORBIDDEN = (
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1"),  # noqa: S104
    *("192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "::7f00:1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1"),
    *(
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:a00:1::",
        "fc00::1",
        "fe80::1",
        "fe80::1%lo",
        "fec0::1",
        "ff02::1",
    ),
)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_allowed(ip_address(address), ())


@pytest.mark.parametrize("address", FORBIDDEN)
def test_an_address_that_is_not_public_is_forbidden(address: str) -> None:
    assert not is_allowed(ip_address(address), ())


def test_an_allow_list_allows_what_is_in_it_and_nothing_else(settings: Settings) -> None:
    settings.REFRESH_DELIVER_NETWORKS = ("10.1.0.0/16", "fd00::/8")
    allowed = [
        one
        for one in [*PUBLIC, *FORBIDDEN, "fd00::7", "::ffff:10.1.2.3"]
        if is_allowed(ip_address(one), networks())
    ]
    assert allowed == ["10.1.2.3", "fd00::7", "::ffff:10.1.2.3"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://example.com/#part",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://exa mple.com/",
        "http://example.com/\r\nX: y",
        "http://example.com\\@127.0.0.1/",
        "http://[::1/",
        "http://127.0.0.2/",
        "http://[::ffff:127.0.0.2]/",
        "http://ex\u00e4mple.com/",
        "http://example.com/" + "x" * 2_000,
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="url"):
        refuse_unusable(url)


@pytest.mark.parametrize("url", ["http://example.com", "https://example.com:8443/a?b=c", "http://127.0.0.1:80/"])
def test_a_usable_address_is_taken(url: str) -> None:
    refuse_unusable(url)


def test_a_name_has_no_space_at_its_ends(database: str) -> None:
    with pytest.raises(Refused):
        subscriptions.create(" x", "http://127.0.0.1/")
    assert not Subscription.objects.exists()


def test_a_test_tells_not_which_names_there_are(database: str, settings: Settings) -> None:
    """The first is a name of this machine, whose address is not allowed; the second is no name."""
    settings.REFRESH_DELIVER_NETWORKS = ("192.0.2.0/24",)
    answers = {
        subscriptions.test(subscriptions.create(host, f"http://{host}:9/"))
        for host in ("localhost", "no-such-name.invalid")
    }
    assert answers == {Answer(None, "the name leads to no address that webhooks may reach")}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("The URL /hook/x7Zq9vKp2mWs4LdE?key=a1b2c3&to=x%20y was not found", "The URL … was not found"),
        ("no hook/x7Zq9vKp2mWs4LdE", "no hook/…"),
        ("GET /hook/x7Zq9vKp2mWs4LdE", "GET …"),
        ("bad query: key=a1b2c3&amp;to=x%20y", "bad query: …"),
        ("bad query: key=a1b2c3&to=x y", "bad query: …"),
        ("no such hook", "no such hook"),
        ("x" * 195 + "/hook/x7Zq9vKp2mWs4LdE", "x" * 195 + "…"),
    ],
)
def test_an_answer_that_names_the_path_is_stored_without_it(
    database: str, good: Receiver, said: str, shown: str
) -> None:
    """Those who may not see the path of an address see the error of a delivery."""
    made = subscriptions.create("x", f"{good.url}/x7Zq9vKp2mWs4LdE?key=a1b2c3&to=x%20y")
    good.status, good.body = 404, said.encode()
    assert subscriptions.test(made).error == f"it answered 404: {shown}"
