"""The wheel has ranges and CI has pins: the tests run with versions that the ranges allow."""

from packaging.utils import canonicalize_name

from tests.distribution.metadata import declared, pinned, project

#: Pinned for the service, and imported by nothing that the wheel carries.
SERVICE_ALONE = {"hiredis", "whitenoise", "gunicorn", "waitress"}
#: By the pins of kombu[redis] and of django-ninja.
BROUGHT = {"packaging", "pydantic"}


def test_each_pin_lies_within_its_range() -> None:
    ranges = {canonicalize_name(one.name): one.specifier for one in declared()}
    pins = {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in pinned()}
    assert pins.keys() - ranges.keys() == SERVICE_ALONE
    assert ranges.keys() - pins.keys() == BROUGHT
    assert {name: pin for name, pin in pins.items() if name in ranges and not ranges[name].contains(pin)} == {}


def test_the_ranges_are_those_that_the_docs_promise() -> None:
    ranges = {canonicalize_name(one.name): str(one.specifier) for one in declared()}
    assert {name: text for name, text in ranges.items() if name in ("celery", "kombu", "redis", "django")} == {
        "celery": ">=5.6",
        "kombu": ">=5.6",
        "redis": ">=5.2",
        "django": "<7,>=5.2",
    }
    assert project()["requires-python"] == ">=3.11"
    assert all("==" not in str(one.specifier) for one in declared())
