"""The pages of a service that is attached to a running Harbor: they say which actions are Harbor's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, expect

from harbor_refresh.executions.attached.ownership import ON_PAGES
from tests.browser.axe import must_be_usable
from tests.browser.conftest import MILLISECONDS
from tests.browser.sizes import DESKTOP
from tests.harbor.databases import ATTACHED
from tests.harbor.samples import execution
from tests.integration.service.web import serving

pytestmark = pytest.mark.slow

PAGES = ("execution/", "execution/{}/change/", "task/", "task/1/change/")


@pytest.fixture
def at_ease(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Playwright has an event loop in this thread, and no other coroutine asks the database."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


@pytest.fixture
def url(at_ease: None, redis_server: None, attached: str, tmp_path: Path) -> Iterator[str]:
    with serving(attached, tmp_path / "web.log", **ATTACHED) as url:
        yield url


def test_a_page_says_which_actions_are_harbors(browser: Browser, url: str) -> None:
    pk = execution("Running", None, "Running", "Success")
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    profile = browser.new_context(base_url=url, viewport=DESKTOP, reduced_motion="reduce")
    profile.set_default_timeout(MILLISECONDS)
    profile.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}])
    for address in PAGES:
        page = profile.new_page()
        page.goto(f"/admin/harbor_executions/{address.format(pk)}")
        expect(page.get_by_text(ON_PAGES)).to_have_count(1)
        must_be_usable(page)
        page.close()
    profile.close()
