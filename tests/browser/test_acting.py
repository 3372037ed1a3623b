"""Actions on the page of an execution, on chosen rows and on the queue, and who may act."""

import re
from time import sleep
from typing import Any

import httpx2
from playwright.sync_api import expect

from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import ApiToken, AuditEntry, Execution, Quarantine, Task
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.operations.pauses import paused
from tests.browser.acting import (
    EXECUTIONS,
    action_of,
    add_link,
    choose_all,
    choose_rows,
    confirm,
    confirm_on_rows,
    page_of,
    press,
    run_on_rows,
    shown_status,
    started,
    status_becomes,
)
from tests.browser.axe import must_be_usable
from tests.browser.conftest import OpenPage
from tests.browser.service import PASSWORD, Service
from tests.faults import jobs
from tests.integration.operations.actions.sample_bulk import ELSEWHERE, with_jobs
from tests.integration.sample_executions import drifted, made, status_of
from tests.waiting import wait_for


def test_stop_ends_the_jobs_of_an_execution_and_resume_runs_them_again(
    open_page: OpenPage, service: Service
) -> None:
    execution = started(service, jobs.endless.s("stopped in the browser"))
    name = "endless stopped in the browser"
    wait_for(lambda: service.runs_of(name) == 1, "the job to run")
    page = open_page(page_of(execution))
    expect(shown_status(page)).to_have_text("Running")
    confirm(page, "Stop", "Stop")
    expect(shown_status(page)).to_have_text("Stopped")
    expect(page.get_by_text("1 execution stopped.")).to_be_visible()
    assert Task.objects.get(execution_id=execution.pk).status == "Stopped"
    confirm(page, "Resume stopped jobs", "Resume")
    wait_for(lambda: service.runs_of(name) == 2, "the job to run again")
    expect(shown_status(page)).to_have_text("Running")
    confirm(page, "Stop", "Stop")
    expect(shown_status(page)).to_have_text("Stopped")
    entries = AuditEntry.objects.filter(target=str(execution.pk)).order_by("pk")
    assert list(entries.values_list("by", "origin", "verb")) == [
        ("operator", "admin", "stop"),
        ("operator", "admin", "resume"),
        ("operator", "admin", "stop"),
    ]


def test_the_answer_has_the_focus_if_the_browser_draws_before_its_scripts_are_there(open_page: OpenPage) -> None:
    execution, _ = made(1)
    page = open_page(page_of(execution))
    page.route(re.compile(r"/alpine\.(\w+\.)?js"), lambda route: (sleep(1), route.continue_()))
    action_of(page, "Stop").click()
    expect(page.locator(":focus")).to_have_text("Stop")


def test_cancel_leads_back_and_leaves_everything_as_it_is(open_page: OpenPage) -> None:
    execution, _ = made(1)
    page = open_page(page_of(execution))
    press(page, "Stop")
    expect(page.locator(":focus")).to_have_text("Stop")
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(re.compile(rf"{page_of(execution)}$"))
    assert Execution.objects.get(pk=execution.pk).status == "Running"


def statuses(vendor: str) -> list[str]:
    return sorted(Execution.objects.filter(vendor_type=vendor).values_list("status", flat=True))


def outcomes(verb: str, *executions: Any) -> list[str]:
    """What the log of actions says of this verb, in order."""
    entries = AuditEntry.objects.filter(verb=verb, target__in=[str(one.pk) for one in executions])
    return list(entries.order_by("pk").values_list("outcome", flat=True))


def test_a_refresh_mends_a_wrong_status_says_so_and_a_second_one_is_unchanged(
    open_page: OpenPage, service: Service
) -> None:
    rows = [drifted(vendor="REFRESHED") for _ in range(3)]
    page = open_page(page_of(rows[0]), "administrator")
    for _ in range(2):
        confirm(page, "Refresh now", "Refresh")
    expect(page.get_by_text(f"Left as they are: {rows[0].pk}.")).to_be_visible()
    assert outcomes("refresh", rows[0]) == ["done", "unchanged"]
    page.goto(f"{EXECUTIONS}?vendor=REFRESHED")
    choose_rows(page)
    confirm_on_rows(page, "Refresh now", "Refresh 3 executions")
    expect(page.get_by_text("2 executions refreshed.")).to_be_visible()
    assert statuses("REFRESHED") == ["Success"] * 3
    assert outcomes("refresh", *rows) == ["done", "unchanged", "unchanged", "done", "done"]
    choose_rows(page)
    run_on_rows(page, "Delete")
    expect(page.locator(":focus")).to_have_text("Cancel")
    page.get_by_role("button", name="Delete 3 executions").click()
    expect(page.get_by_text("3 executions deleted.")).to_be_visible()
    assert statuses("REFRESHED") == []


def test_all_that_have_jobs_are_stopped(open_page: OpenPage, service: Service) -> None:
    service.start_worker()
    with_jobs(60, "HAS_JOBS", queue=ELSEWHERE)
    Job.objects.update(queue="that no worker takes")
    without, (task,) = made(1, "HAS_JOBS")
    page = open_page(f"{EXECUTIONS}?vendor=HAS_JOBS&has_jobs=yes")
    choose_all(page)
    run_on_rows(page, "Stop")
    expect(page.get_by_text("vendor type HAS_JOBS, has jobs")).to_be_visible()
    page.get_by_role("button", name="Stop 60 executions").click()
    expect(page.get_by_text("60 changed, 0 left as they are, 0 failed.")).to_be_visible()
    assert status_of(without) == "Running"
    report([Report(task, "Success", 1)])
    status_becomes(without, "Success")


TOKENS = "/admin/harbor_executions/apitoken/"


def test_a_token_is_shown_once_opens_the_api_and_is_revoked(open_page: OpenPage, service: Service) -> None:
    page = open_page(TOKENS, "administrator")
    add_link(page, TOKENS).click()
    page.get_by_label("Name").fill("a program of the browser")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("This is the only time that the token is shown.")).to_be_visible()
    must_be_usable(page)
    token = page.locator("pre").inner_text().strip()

    def answer() -> int:
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{service.url}/api/v1/executions"
        return httpx2.get(url, headers=headers, trust_env=False, timeout=60).status_code

    assert answer() == 200
    page.goto(f"{TOKENS}?q=a+program+of+the+browser")
    assert token not in page.content()
    choose_rows(page)
    confirm_on_rows(page, "Revoke", "Revoke 1 API token")
    expect(page.get_by_text("a program of the browser is revoked")).to_be_visible()
    assert answer() == 401
    assert ApiToken.objects.get(name="a program of the browser").revoked_at is not None


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


def test_a_quarantined_execution_says_why_and_is_released_on_its_page(
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
    confirm(page, "Release from quarantine", "Release")
    expect(page.get_by_text("1 execution released from quarantine and will be refreshed soon.")).to_be_visible()
    wait_for(lambda: not Quarantine.objects.filter(pk=execution.pk).exists(), "the release")
    status_becomes(execution, "Success")
    expect(page.locator("#execution-panel").get_by_role("status")).to_have_text(re.compile("Success"))


QUEUE = "/admin/harbor_tasks/pause/"


def test_a_person_signs_in_and_sees_the_dashboard(open_page: OpenPage) -> None:
    page = open_page("/", "")
    page.get_by_label("Username").fill("viewer")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    expect(page.get_by_text("Live nodes").first).to_be_visible()
