"""Stop, resume, retry, refresh and delete on the page of one execution, and stop and retry of one task: the real
pipeline does what the page says."""

import re
from time import sleep

from playwright.sync_api import expect

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import AuditEntry, Execution, Task
from tests.browser.acting import (
    EXECUTIONS,
    action_of,
    confirm,
    page_of,
    press,
    shown_status,
    started,
    status_becomes,
)
from tests.browser.acts import acts
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.faults import jobs
from tests.integration.sample_executions import made
from tests.waiting import wait_for


@acts("execution.stop on its page", "execution.resume on its page")
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


@acts("execution.retry on its page")
def test_retry_runs_a_failed_job_again_until_it_succeeds(open_page: OpenPage, service: Service) -> None:
    execution = started(service, jobs.flaky.s("flaky in the browser", 3))
    status_becomes(execution, "Error")
    page = open_page(page_of(execution))
    expect(shown_status(page)).to_have_text("Error")
    expect(page.locator("#execution-panel")).to_contain_text("1 of 1 task has ended, 1 with an error.")
    assert service.runs_of("flaky flaky in the browser") == 3
    confirm(page, "Retry failed jobs", "Retry")
    expect(shown_status(page)).to_have_text("Success")


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


@acts("task.stop on its page")
def test_one_task_is_stopped(open_page: OpenPage, service: Service) -> None:
    execution, (first, second) = made(2)
    page = open_page(f"/admin/harbor_executions/task/{first}/change/")
    confirm(page, "Stop", "Stop")
    expect(page.get_by_text("Stopped").first).to_be_visible()
    assert Task.objects.get(pk=first).status == "Stopped"
    report([Report(second, "Success", 1)])
    status_becomes(execution, "Stopped")


@acts("task.retry on its page")
def test_the_job_of_one_failed_task_runs_again(open_page: OpenPage, service: Service) -> None:
    execution = started(service, jobs.flaky.s("one task in the browser", 3))
    status_becomes(execution, "Error")
    task = Task.objects.get(execution_id=execution.pk)
    page = open_page(f"/admin/harbor_executions/task/{task.pk}/change/")
    confirm(page, "Run again", "Run")
    expect(page.get_by_text("Its job will run once more.")).to_be_visible()
    status_becomes(execution, "Success")
    assert service.runs_of("flaky one task in the browser") == 4


@acts("execution.remove on its page")
def test_an_execution_that_has_ended_is_deleted_by_an_administrator(open_page: OpenPage) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Success", 1)])
    status_becomes(execution, "Success")
    page = open_page(page_of(execution), "administrator")
    confirm(page, "Delete", "Delete")
    wait_for(lambda: not Execution.objects.filter(pk=execution.pk).exists(), "the execution to be gone")
    assert page.url.endswith(EXECUTIONS)
