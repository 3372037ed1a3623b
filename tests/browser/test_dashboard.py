"""The dashboard says what is wrong while it is wrong, and then how it healed, without a reload."""

import re

import pytest
from playwright.sync_api import expect

from harbor_refresh.executions.admin.site_pages import DOWN
from harbor_refresh.executions.lifecycle.reports import Report, report
from tests.browser.acting import started, status_becomes
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.faults import jobs
from tests.integration.sample_executions import made
from tests.waiting import wait_for


@pytest.mark.slow
def test_after_a_kill_of_the_worker_the_dashboard_says_so_and_then_how_it_healed(
    open_page: OpenPage, service: Service
) -> None:
    worker = service.start_worker()
    execution = started(service, jobs.held.s("killed in the browser"))
    page = open_page("/admin/")
    page.evaluate("window.notLoadedAgain = true")
    findings = page.locator("[data-part=findings]")
    wait_for(lambda: service.has_begun("held killed in the browser"), "the job to begin")
    worker.kill()
    service.let_end("killed in the browser", run=2)
    expect(findings).to_contain_text("No worker is alive")
    expect(findings).to_contain_text("Start one with: celery -A harbor_refresh worker")
    expect(page.locator('[data-card="workers"] [data-value]')).to_have_text("0")
    waiting, (task,) = made(1)
    report([Report(task, "Success", 1)])
    expect(page.locator('[data-card="backlog"] [data-value]')).to_have_text(re.compile("[1-9]"))
    service.start_worker()
    expect(findings).not_to_contain_text("No worker is alive")
    status_becomes(execution, "Success")
    status_becomes(waiting, "Success")
    expect(page.locator("[data-part=events]")).to_contain_text(re.compile("died"))
    expect(page.locator("[data-part=events]").get_by_text("healing").first).to_be_visible()
    assert page.evaluate("window.notLoadedAgain")


def test_an_open_page_says_within_a_round_that_the_database_is_down(open_page: OpenPage) -> None:
    page = open_page("/admin/")
    page.evaluate(
        "headers => { [window.asks, fetch] = [fetch, async () => new Response(null, { status: 503, headers })]; }",
        DOWN,
    )
    expect(page.locator("[data-trouble]")).to_have_text(" · PostgreSQL is unavailable")
    page.evaluate("() => { fetch = window.asks; }")
    expect(page.locator("[data-trouble]")).to_have_text("")


def test_a_page_that_is_hidden_and_shown_while_it_asks_does_not_ask_twice(open_page: OpenPage) -> None:
    page = open_page("/admin/")
    page.evaluate("""() => {
        window.asked = window.busy = window.most = 0;
        fetch = async () => {
            most = Math.max(most, ++busy);
            if (++asked === 1) {
                document.dispatchEvent(new Event("visibilitychange"));
            }
            await new Promise((later) => setTimeout(later, 100));
            busy -= 1;
            return Response.json({ parts: {}, cards: [] });
        };
    }""")
    page.wait_for_function("asked > 2")
    assert page.evaluate("most") == 1


def test_the_number_of_findings_is_read_out_and_takes_no_place(open_page: OpenPage) -> None:
    number = open_page("/admin/").get_by_role("status")
    expect(number).to_have_text(re.compile("finding"))
    assert number.evaluate("one => [one.offsetWidth, one.offsetHeight]") == [1, 1]


def test_the_charts_change_from_the_hour_to_the_day(open_page: OpenPage) -> None:
    page = open_page("/admin/")
    hour, day = (page.get_by_role("button", name=f"Last {span}") for span in ("hour", "day"))
    expect(hour).to_have_attribute("aria-pressed", "true")
    with page.expect_response(re.compile("charts/day")):
        day.click()
    expect(day).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-chart] canvas").first).to_be_visible()
