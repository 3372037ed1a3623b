"""Each page of the documentation, as `make docs` builds it: axe finds no serious violation, no page logs an error,
and no request leaves the machine. Some pages are looked at in the dark and on a phone as well."""

import itertools
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, TimeoutError

from tests.browser.axe import run, violations
from tests.browser.sizes import DESKTOP
from tests.terminal import ran
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

#: With each kind of content: code, tables, signatures, and links in them.
VARIED = tuple(
    f"{name}.html"
    for name in ("start/project", "howto/jobs", "reference/settings", "reference/events", "explanation/comparison")
)
#: What the switch of the site does.
IN_THE_DARK = "isDark => document.body.setAttribute('data-md-color-scheme', isDark ? 'slate' : 'default')"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """The address of the site, and those of its pages."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder]
    done = ran(command)
    assert done.returncode == 0, done.stderr
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        there = sorted(one for one in folder.rglob("*.html") if one.stem != "404")
        yield url, [url + str(one.relative_to(folder)) for one in there]
        server.shutdown()


def test_each_page_can_be_used_by_everyone_and_loads_nothing_from_elsewhere(
    site: tuple[str, list[str]], browser: Browser
) -> None:
    url, addresses = site
    assert len(addresses) > 40
    found: list[str] = []
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    page = context.new_page()
    page.on("request", lambda one: one.url.startswith((url, "data:", "blob:")) or found.append(one.url))
    page.on("console", lambda one: one.type != "error" or found.append(one.text))
    page.on("pageerror", lambda error: found.append(str(error)))
    for address in addresses:
        page.goto(address)
        name = address.removeprefix(url)
        is_varied = name in VARIED
        told = violations(page, in_the_dark=IN_THE_DARK) if is_varied else run(page, "html", "light")
        found += [f"{name} {one}" for one in told]
    #: A busy machine needs long, and begins anew with each try.
    patience = (5_000 * 2**tries for tries in itertools.count())

    def is_found() -> bool:
        page.goto(url)
        page.get_by_placeholder("Search").fill("quarantine")
        with suppress(TimeoutError):
            page.locator(".md-search-result__item").first.wait_for(timeout=next(patience))
            return True
        return False

    wait_for(is_found, "a result: what is typed before the search has its index is lost")
    context.close()
    assert not found, "\n".join(dict.fromkeys(found))
