"""A viewer sees every page and can act on none; an operator acts and does not delete; the login."""

from playwright.sync_api import expect

from harbor_refresh.executions.lifecycle.quarantines import quarantine
from tests.browser.acting import EXECUTIONS, action_of, page_of
from tests.browser.conftest import OpenPage
from tests.browser.service import PASSWORD
from tests.integration.sample_executions import made

QUEUE = "/admin/harbor_tasks/pause/"


def test_a_viewer_finds_no_action_on_any_page(open_page: OpenPage) -> None:
    execution, (task,) = made(1)
    quarantine([execution.pk], 5, {execution.pk: "it fails"})
    page = open_page(page_of(execution), "viewer")
    expect(page.locator("#execution-panel")).to_contain_text("0 of 1 task")
    for name in ("Stop", "Refresh now", "Release from quarantine", "Delete"):
        expect(action_of(page, name)).to_have_count(0)
    page.goto(f"/admin/harbor_executions/task/{task}/change/")
    expect(action_of(page, "Stop")).to_have_count(0)
    for address in (EXECUTIONS, "/admin/harbor_executions/quarantine/"):
        page.goto(address)
        expect(page.get_by_text("it fails").or_(page.get_by_text("Quarantined")).first).to_be_visible()
        expect(page.locator("select[name=action]")).to_have_count(0)
    page.goto(QUEUE)
    expect(page.get_by_text("harbor_refresh.jobs")).to_be_visible()
    for name in ("Pause", "Recover now", "Release"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)


def test_a_person_signs_in_and_sees_the_dashboard(open_page: OpenPage) -> None:
    page = open_page("/", "")
    page.get_by_label("Username").fill("viewer")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    expect(page.get_by_text("Worker processes").first).to_be_visible()
