"""{% execution_progress execution events=… %} on a page of a host: its script keeps the bar true. The script of
docs/howto/jobs.md does so for a bar of the host's own."""

import json
from pathlib import Path

from django.template import Context, Template
from playwright.sync_api import Browser, Page, Route, expect

from harbor_refresh import executions
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from tests import pages
from tests.browser.conftest import MILLISECONDS
from tests.browser.service import Service

SCRIPT = Path(executions.__file__).with_name("static") / "executions/progress.js"
HOST = "http://host.test"
EVENTS = (
    ("progress", {"status": "Running", "progress": 0.5, "done": 2, "tasks": 4, "seconds_left": 7_300}),
    ("end", {"status": "Success", "progress": 1, "done": 4, "tasks": 4, "seconds_left": None}),
)
TOLD = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in EVENTS)


def opened(browser: Browser, text: str, events: str) -> tuple[Page, list[str]]:
    """Open a page of the host with this text, whose events have this address. Return it, and what it asks for."""
    page = browser.new_page()
    page.set_default_timeout(MILLISECONDS)
    asked: list[str] = []

    def answer(route: Route) -> None:
        place = route.request.url.removeprefix(HOST)
        asked.append(place)
        if place == events:
            route.fulfill(body=TOLD, content_type="text/event-stream")
        elif place.endswith("progress.js"):
            route.fulfill(path=SCRIPT, content_type="text/javascript")
        else:
            route.fulfill(body=f"<!doctype html><html lang=en>{text}", content_type="text/html")

    page.route(f"{HOST}/**", answer)
    page.goto(f"{HOST}/mirror")
    return page, asked


def test_the_bar_follows_the_events_to_the_end(browser: Browser, service: Service) -> None:
    execution = create(NewExecution("REPLICATION", tasks=[NewTask()] * 4))
    text = "{% load harbor_refresh %}{% execution_progress execution events='/events/' %}"
    shown = Template(text).render(Context({"execution": execution}))
    page, asked = opened(browser, f"<title>Mirror</title><main>{shown}{shown}</main>", "/events/")
    for box in page.locator("[data-execution-progress]").all():
        expect(box).to_have_text("Success: 4 of 4 tasks have ended")
        expect(box).to_have_attribute("data-status", "Success")
        assert box.get_by_role("progressbar").evaluate("bar => bar.value") == 1
    assert asked.count("/events/") == 2, "each follows until the end, and no longer"
    page.close()


def test_the_script_of_the_page_of_jobs_moves_a_bar_of_the_host_to_the_end(browser: Browser) -> None:
    (script,) = pages.codes(pages.section(pages.read("docs/howto/jobs.md"), "Progress"), "js")
    text = f"<progress id=bar></progress><script>{script}</script>"
    page, asked = opened(browser, text, "/mirrors/17/events/")
    page.wait_for_function("document.getElementById('bar').value === 1")
    page.wait_for_function("events.readyState === EventSource.CLOSED")
    assert asked.count("/mirrors/17/events/") == 1
    page.close()
