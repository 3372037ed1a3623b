"""The executions of an object on its page in a project's own admin, in both looks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.process import spawn
from tests.browser.axe import violations
from tests.browser.sizes import DESKTOP
from tests.hosts.fleet import MADE, host_of
from tests.hosts.host import Host
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

GROUP = "#executions-group"
MADE_BY_ROOT = f"""
below = "/admin/"
{MADE}
User.objects.create_superuser("root")
sign_in("root")
device = things[1]
print(json.dumps([page(device), made[device][-1].pk, client.cookies["sessionid"].value]))
"""


@contextmanager
def serving(host: Host, log: Path) -> Iterator[str]:
    """Django's own server of the project, with its static files."""
    url = f"http://{LOOPBACK}:{choose_port()}"
    words = ["-m", "django", "runserver", "--insecure", "--noreload", "--nothreading", url.rpartition("/")[2]]
    env = {**host.env, "CELERY_BROKER_URL": ""}
    process = spawn([sys.executable, *words], log=log, death_signal=SIGKILL, cwd=host.folder, env=env)

    def answers() -> bool:
        with suppress(httpx2.HTTPError):
            return httpx2.get(f"{url}/admin/login/").status_code == 200
        return False

    try:
        wait_for(lambda: process.poll() is not None or answers(), "the project to answer", log=log)
        assert process.poll() is None, log.read_text()
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def at_ease(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Playwright has an event loop in this thread, and no other coroutine asks the database."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


@pytest.fixture
def shop(at_ease: None, database: str) -> str:
    """The database of the project."""
    return database


@pytest.mark.parametrize(("project", "tab"), [("a plain admin", False), ("unfold", False), ("unfold", True)])
def test_the_executions_of_a_device_lead_to_their_pages_and_to_all_of_them(
    browser: Browser, shop: str, tmp_path: Path, project: str, tab: bool
) -> None:
    host, _ = host_of(project, tmp_path, shop, tab=tab)
    address, last, session = host.ask(MADE_BY_ROOT, CELERY_BROKER_URL="")
    with serving(host, tmp_path / "host.log") as url:
        profile = browser.new_context(base_url=url, viewport=DESKTOP, reduced_motion="reduce")
        profile.add_cookies([{"name": "sessionid", "value": session, "url": url}])
        page = profile.new_page()
        page.goto(address)
        group = page.locator(GROUP)
        if tab:
            expect(group).to_be_hidden()
            page.locator("#tabs-items").get_by_text("Executions").click()
        expect(group.get_by_role("row")).to_have_count(11)
        newest = group.get_by_role("row").nth(1)
        expect(newest).to_contain_text("Running")
        expect(newest).to_contain_text("1 of 2 ended")
        assert newest.locator(".harbor-error").bounding_box()["width"] > 20  # type: ignore[index]
        assert violations(page, within=GROUP) == [], "the rest of the page is the project's"
        group.get_by_role("link", name="All in the list of executions").click()
        expect(page.locator("#result_list tbody tr:has(.action-select)")).to_have_count(12)
        page.go_back()
        page.get_by_role("link", name=str(last), exact=True).click()
        expect(page).to_have_url(f"{url}/admin/harbor_executions/execution/{last}/change/")
        assert page.locator("#its-place").bounding_box()["width"] > DESKTOP["width"] / 2  # type: ignore[index]
        profile.close()
