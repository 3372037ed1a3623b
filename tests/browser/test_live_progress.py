"""The page of an execution and the bars of its jobs follow it without being loaded again."""

from playwright.sync_api import Page, expect

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs import start
from tests.browser.axe import must_be_usable
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.faults.jobs import layers
from tests.integration.sample_executions import made
from tests.waiting import wait_for


def test_the_bar_of_an_execution_grows_without_a_reload(open_page: OpenPage) -> None:
    execution, tasks = made(10)
    page = open_page(f"/admin/harbor_executions/execution/{execution.pk}/change/")
    page.evaluate("window.notLoadedAgain = true")
    panel = page.locator("#execution-panel")
    expect(panel).to_contain_text("0 of 10 tasks have ended.")
    widths = []
    for ended in (3, 7, 10):
        report(Report(pk, "Success", 1) for pk in tasks[:ended])
        expect(panel).to_contain_text(f"{ended} of 10 tasks have ended.")
        widths.append(panel.locator(".harbor-success").evaluate("bar => bar.style.width"))
    assert widths == ["30%", "70%", "100%"]
    expect(panel.get_by_role("status")).to_have_text("Success")
    expect(panel.get_by_role("list")).to_contain_text("Running")
    assert page.evaluate("window.notLoadedAgain")
    assert Task.objects.filter(execution=execution, status="Success").count() == 10


def test_what_runs_is_hatched_in_a_bar_and_what_has_ended_is_not(open_page: OpenPage) -> None:
    _, tasks = made(3, "HATCHED")
    report([Report(tasks[0], "Success", 1), Report(tasks[1], "Running", 1)])
    page = open_page("/admin/harbor_executions/execution/?vendor=HATCHED")
    bar = page.locator("#result_list .harbor-progress")
    look = "part => [part.title, getComputedStyle(part).backgroundImage.split('(')[0]]"
    assert bar.evaluate(f"bar => [...bar.children].map({look})") == [
        ["Success: 33.33%", "none"],
        ["Running: 33.33%", "repeating-linear-gradient"],
    ]


NAME = "layers of a browser"


def test_the_bar_of_a_job_grows_without_a_reload(open_page: OpenPage, service: Service) -> None:
    service.start_worker()
    execution = start("REPLICATION", jobs=[layers.s(NAME, 4)])
    wait_for(lambda: service.has_begun(f"held {NAME}"), "the job to begin")
    page = open_page(f"/admin/harbor_executions/execution/{execution.pk}/change/")
    page.evaluate("window.notLoadedAgain = true")
    running = page.locator("#its-running")
    for done in (0, 1, 2):
        expect(running).to_contain_text(f"{done} of 4")
        expect(running).to_contain_text(f"copying layer {done + 1}")
        assert _bar(running.page).evaluate("bar => bar.value") == done
        if done < 2:
            service.let_end(NAME, done + 1)
    assert page.evaluate("window.notLoadedAgain")
    must_be_usable(page)

    page.goto(f"/admin/harbor_executions/task/{execution.tasks.get().pk}/change/")
    assert _bar(page).evaluate("bar => [bar.value, bar.max]") == [2, 4]
    must_be_usable(page)
    for layer in (3, 4):
        service.let_end(NAME, layer)
    assert execution.wait(timeout=300) == "Success"


def _bar(page: Page) -> Page:
    return page.get_by_role("progressbar", name="Progress of the job")
