"""A setting has one validator: the text of a variable, and the value of Python that means the same."""

from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.conf.declarations import Declared, checked, takes

ONE = {
    "flag": Declared("A_FLAG", "flag", None, ""),
    "integer": Declared("SOME_COUNT", "integer", None, "", at_least=1, at_most=20),
    "number": Declared("SOME_HOURS", "number", 24, "", at_least=0.5),
    "one_of": Declared("A_CHOICE", "one_of", "", "", choices=("claim", "scan")),
    "text": Declared("A_TEXT", "text", "", ""),
    "secret": Declared("A_SECRET", "secret", "", ""),
    "http_url": Declared("AN_ADDRESS", "http_url", "", ""),
    "networks": Declared("SOME_NETWORKS", "networks", (), ""),
    "counts": Declared("SOME_COUNTS", "counts", {}, "", at_least=1, at_most=20),
}


@pytest.mark.parametrize(
    ("kind", "text", "given", "value"),
    [
        ("flag", "Yes", True, True),
        ("flag", "0", False, False),
        ("integer", "7", 7, 7),
        ("number", "1.5", 1.5, 1.5),
        ("number", "7", 7, 7),
        ("one_of", "Scan", "scan", "scan"),
        ("text", "a b", "a b", "a b"),
        ("secret", "s", "s", "s"),
        ("http_url", "https://h:1/a", "https://h:1/a/", "https://h:1/a/"),
        ("networks", "10.1.2.3/16, ::1", ["10.1.0.0/16", "::1"], ("10.1.0.0/16", "::1/128")),
        ("counts", "A:3,*:20", {"A": 3, "*": 20}, {"A": 3, "*": 20}),
    ],
)
def test_a_text_and_a_value_mean_the_same(kind: str, text: str, given: Any, value: Any) -> None:
    assert checked(ONE[kind], text) == checked(ONE[kind], given) == value


@pytest.mark.parametrize(
    ("kind", "text", "given"),
    [
        ("flag", "perhaps", 2),
        ("integer", "0", 0),
        ("integer", "21", 21),
        ("integer", "1.5", 7.5),
        ("integer", "one", True),
        ("number", "nan", float("nan")),
        ("number", "inf", float("inf")),
        ("number", "0.4", 0.4),
        ("number", "31536001", True),
        ("one_of", "fast", 3),
        ("http_url", "h:1/a", "ftp://h"),
        ("http_url", "http://h?q", "http://h#f"),
        ("networks", "10.1.0.0/33", ["10.1.0.0/33"]),
        ("networks", "1", 1),
        ("counts", "A", ["A"]),
        ("counts", "A:0", {"A": 0}),
        ("counts", ":3", {"": 3}),
        ("counts", "A:many", {"A": 1.5}),
    ],
)
def test_what_does_not_fit_is_refused_in_both_forms(kind: str, text: str, given: Any) -> None:
    for attempt in (text, given):
        with pytest.raises((ValueError, TypeError, LookupError)):
            checked(ONE[kind], attempt)


def test_a_message_says_what_fits_in_the_form_that_was_used() -> None:
    assert takes(ONE["counts"], as_text=True) == "NAME:N separated by commas, N from 1 to 20"
    assert takes(ONE["counts"], as_text=False) == "a dictionary of whole numbers by vendor type, each from 1 to 20"
    assert takes(ONE["number"], as_text=False) == "a number from 0.5 to 31,536,000"
    assert takes(ONE["one_of"], as_text=True) == "one of claim, scan"
    assert takes(ONE["flag"], as_text=False) == "True or False"


def test_a_project_has_its_own_settings_and_none_of_the_service(settings: Settings) -> None:
    settings.HARBOR_REFRESH_SERVICE = False
    settings.HARBOR_REFRESH = {"ATTACH": "harbor", "METRICS_NETWORKS": ["10.1.0.0/16"], "PUBLIC_URL": "https://a"}
    found = intake_settings()
    assert (found.public_url, found.attach, found.metrics_networks) == ("https://a/", "", ())
    assert not is_attached()


def test_a_bad_value_of_a_project_stays_because_a_default_could_allow_more(settings: Settings) -> None:
    settings.HARBOR_REFRESH_SERVICE = False
    settings.HARBOR_REFRESH = {"DELIVER_NETWORKS": ["10.1.0.0/33"]}
    assert intake_settings().deliver_networks == ["10.1.0.0/33"]
