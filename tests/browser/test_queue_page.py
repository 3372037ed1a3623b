"""The page of the queue and the quarantine: pause, resume, recover and release do what they say."""

import re

from playwright.sync_api import expect

from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.tasks.operations.pauses import paused
from tests.browser.acting import page_of, run_on_rows, status_becomes
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.integration.sample_executions import made, status_of
from tests.waiting import wait_for

QUEUE = "/admin/harbor_tasks/pause/"


def test_paused_refreshing_keeps_an_execution_waiting_until_it_is_resumed(
    open_page: OpenPage, service: Service
) -> None:
    worker = service.start_worker()
    page = open_page(QUEUE)
    row = page.get_by_role("row").filter(has_text="Refreshing")
    row.get_by_role("link", name="Pause").click()
    page.get_by_label("Reason").fill("the disk is being changed")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Refreshing is paused.").first).to_be_visible()
    page.evaluate("window.notLoadedAgain = true")
    worker.ends_its_ticks()
    try:
        execution, (task,) = made(1)
        report([Report(task, "Success", 1)])
        expect(page.get_by_text("the disk is being changed").first).to_be_visible()
        expect(page.get_by_role("link", name=str(execution.pk), exact=True)).to_be_visible()
        assert page.evaluate("window.notLoadedAgain")
        assert status_of(execution) == "Running"
        dashboard = open_page("/admin/")
        expect(dashboard.get_by_text("An operator has paused refreshing.")).to_be_visible()
    finally:
        page.get_by_role("row").filter(has_text="Refreshing").get_by_role("link", name="Resume").click()
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_text("Refreshing is resumed.")).to_be_visible()
    assert not paused()
    status_becomes(execution, "Success")
    expect(dashboard.get_by_text("An operator has paused refreshing.")).to_be_hidden()


def test_a_quarantined_execution_says_why_leads_to_its_quarantine_and_is_released_there(
    open_page: OpenPage, service: Service
) -> None:
    service.start_worker()
    execution, (task,) = made(1)
    quarantine([execution.pk], 5, {execution.pk: "its row was locked for an hour"})
    report([Report(task, "Success", 1)])
    page = open_page(page_of(execution))
    panel = page.locator("#execution-panel")
    expect(panel).to_contain_text("its row was locked for an hour")
    expect(page.get_by_role("link", name="Refresh now")).to_have_count(0)
    page.get_by_role("link", name="Release it in the quarantine").click()
    row = page.get_by_role("row").filter(has_text="its row was locked for an hour")
    row.get_by_role("checkbox").check()
    run_on_rows(page, "Release")
    expect(page.get_by_text("1 execution released from quarantine and will be refreshed soon.")).to_be_visible()
    wait_for(lambda: not Quarantine.objects.filter(pk=execution.pk).exists(), "the release")
    status_becomes(execution, "Success")
    page.goto(page_of(execution))
    expect(page.locator("#execution-panel").get_by_role("status")).to_have_text(re.compile("Success"))
