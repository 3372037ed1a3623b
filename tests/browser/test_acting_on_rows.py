"""Refresh, retry, stop, resume and delete on the rows that are chosen in the list; and an action on all that have
jobs."""

from typing import Any

from playwright.sync_api import expect

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import AuditEntry, Execution
from harbor_refresh.tasks.models import Job
from tests.browser.acting import (
    EXECUTIONS,
    choose_all,
    choose_rows,
    confirm,
    confirm_on_rows,
    page_of,
    run_on_rows,
    started,
    status_becomes,
)
from tests.browser.acts import acts
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.faults import jobs
from tests.integration.operations.actions.sample_bulk import ELSEWHERE, with_jobs
from tests.integration.sample_executions import drifted, made, status_of
from tests.waiting import wait_for


def statuses(vendor: str) -> list[str]:
    return sorted(Execution.objects.filter(vendor_type=vendor).values_list("status", flat=True))


def outcomes(verb: str, *executions: Any) -> list[str]:
    """What the log of actions says of this verb, in order."""
    entries = AuditEntry.objects.filter(verb=verb, target__in=[str(one.pk) for one in executions])
    return list(entries.order_by("pk").values_list("outcome", flat=True))


@acts("execution.stop", "execution.resume")
def test_the_rows_chosen_are_stopped_and_their_jobs_resumed(open_page: OpenPage, service: Service) -> None:
    names = [f"endless row {number}" for number in range(2)]
    for name in names:
        started(service, jobs.endless.s(name.removeprefix("endless ")), vendor="RESUMED")
    wait_for(lambda: all(service.runs_of(name) == 1 for name in names), "the jobs to run")
    page = open_page(f"{EXECUTIONS}?vendor=RESUMED")
    choose_rows(page)
    confirm_on_rows(page, "Stop", "Stop 2 executions")
    expect(page.get_by_text("2 executions stopped.")).to_be_visible()
    assert statuses("RESUMED") == ["Stopped"] * 2
    choose_rows(page)
    confirm_on_rows(page, "Resume stopped jobs", "Resume 2 executions")
    expect(page.get_by_text("2 executions resumed.")).to_be_visible()
    wait_for(lambda: all(service.runs_of(name) == 2 for name in names), "the jobs to run again")
    wait_for(lambda: statuses("RESUMED") == ["Running"] * 2, "that to be known")
    choose_rows(page)
    confirm_on_rows(page, "Stop", "Stop 2 executions")
    expect(page.get_by_text("2 executions stopped.")).to_be_visible()
    wait_for(lambda: statuses("RESUMED") == ["Stopped"] * 2, "both to be stopped")


@acts("execution.retry")
def test_the_failed_jobs_of_the_rows_chosen_are_tried_again(open_page: OpenPage, service: Service) -> None:
    for number in range(2):
        started(service, jobs.flaky.s(f"row {number}", 3), vendor="RETRIED")
    wait_for(lambda: statuses("RETRIED") == ["Error"] * 2, "both to fail")
    page = open_page(f"{EXECUTIONS}?vendor=RETRIED")
    choose_rows(page)
    confirm_on_rows(page, "Retry failed jobs", "Retry 2 executions")
    expect(page.get_by_text("2 executions retried.")).to_be_visible()
    wait_for(lambda: statuses("RETRIED") == ["Success"] * 2, "both to succeed")


@acts("execution.refresh", "execution.refresh on its page", "execution.remove")
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
