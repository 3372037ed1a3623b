"""A browser, the service it looks at, and pages of users of each role.

The service and the browser are started once in each process of the test run. A page that logs an error, or asks
for something that the service does not have, fails its test.
"""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, expect, sync_playwright
from pytest_django import DjangoDbBlocker

from tests.browser.service import Service, running
from tests.browser.sizes import DESKTOP
from tests.conftest import fresh_database
from tests.programs import needs

if TYPE_CHECKING:
    from pathlib import Path

#: A deadline, which costs a passing test nothing.
MILLISECONDS = 60_000
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]

OpenPage = Callable[..., Page]


@pytest.fixture(scope="package")
def chromium() -> "Path":
    return needs("chromium")


@pytest.fixture(scope="package")
def browser(chromium: "Path") -> Iterator[Browser]:
    expect.set_options(timeout=MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def service(
    chromium: "Path",
    redis_server: None,
    template: str,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    """The service. Playwright has an event loop in this thread. There, Django asks its database only if it is told
    that no other coroutine does."""
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with (
        fresh_database(template, django_db_blocker) as name,
        running(name, tmp_path_factory.mktemp("service")) as service,
    ):
        yield service
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def profiles(browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """A browser profile for each role, kept for its cache: the styles and scripts of a page are a megabyte."""
    profiles: dict[str, BrowserContext] = {}
    yield profiles
    for one in profiles.values():
        one.close()


def _forget(profile: BrowserContext) -> None:
    """Empty its storage, on a page of its own: a page of the test may load itself again just now."""
    page = profile.new_page()
    page.goto("/healthz")
    page.evaluate("localStorage.clear()")
    page.close()
    profile.clear_cookies()


@pytest.fixture
def open_page(service: Service, browser: Browser, profiles: dict[str, BrowserContext]) -> Iterator[OpenPage]:
    """Open a page as a user of this role; "" is a visitor. What a page complains of fails the test.

    Of the test before, the browser knows nothing but its cache. A visitor has a profile of his own, and so has a
    page with `options`."""
    contexts: list[BrowserContext] = []
    pages: list[Page] = []
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            complaints.append(f"{message.text} ({message.location.get('url')})")

    def answered(response: Response) -> None:
        if response.status >= 400 and response.request.resource_type != "document":
            complaints.append(f"{response.status} {response.url}")

    def new_profile(**options: Any) -> BrowserContext:
        own = browser.new_context(
            base_url=service.url, **({"viewport": DESKTOP, "reduced_motion": "reduce"} | options)
        )
        own.set_default_timeout(MILLISECONDS)
        contexts.append(own)
        return own

    def profile_of(role: str) -> BrowserContext:
        if role not in profiles:
            profiles[role] = new_profile()
            contexts.remove(profiles[role])
        return profiles[role]

    def open_page(address: str, role: str = "operator", **options: Any) -> Page:
        context = profile_of(role) if role and not options else new_profile(**options)
        if role:
            context.add_cookies([{"name": "sessionid", "value": service.sign_in(role), "url": service.url}])
        page = context.new_page()
        pages.append(page)
        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("response", answered)
        page.goto(address)
        return page

    yield open_page
    for page in pages:
        page.close()
    for profile in {page.context for page in pages} & set(profiles.values()):
        _forget(profile)
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)
