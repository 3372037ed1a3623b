"""{% execution_progress execution events=… %} on a page of a host: its script keeps the bar true. The script of
docs/jobs.md does so for a bar of the host's own."""

import json
from pathlib import Path

from django.template import Context, Template
from playwright.sync_api import Browser, Route, expect

import executions
from executions.creation import NewExecution, NewTask, create
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


def test_the_bar_follows_the_events_to_the_end(browser: Browser, service: Service) -> None:
    execution = create(NewExecution("REPLICATION", tasks=[NewTask()] * 4))
    text = "{% load harbor_refresh %}{% execution_progress execution events='/events/' %}"
    shown = Template(text).render(Context({"execution": execution}))
    page = browser.new_page()
    page.set_default_timeout(MILLISECONDS)
    asked: list[str] = []

    def answer(route: Route) -> None:
        place = route.request.url.removeprefix(HOST)
        asked.append(place)
        if place == "/events/":
            route.fulfill(body=TOLD, content_type="text/event-stream")
        elif place.endswith("progress.js"):
            route.fulfill(path=SCRIPT, content_type="text/javascript")
        else:
            page_of_the_host = f"<!doctype html><html lang=en><title>Mirror</title><main>{shown}{shown}</main>"
            route.fulfill(body=page_of_the_host, content_type="text/html")

    page.route(f"{HOST}/**", answer)
    page.goto(f"{HOST}/mirror")
    for box in page.locator("[data-execution-progress]").all():
        expect(box).to_have_text("Success: 4 of 4 tasks have ended")
        expect(box).to_have_attribute("data-status", "Success")
        assert box.get_by_role("progressbar").evaluate("bar => bar.value") == 1
    assert asked.count("/events/") == 2, "each follows until the end, and no longer"
    page.close()


def test_the_script_of_the_page_of_jobs_moves_a_bar_of_the_host_to_the_end(browser: Browser) -> None:
    (script,) = pages.codes(pages.section(pages.read("docs/jobs.md"), "Progress on your own pages"), "js")
    page = browser.new_page()
    page.set_default_timeout(MILLISECONDS)
    asked: list[str] = []

    def answer(route: Route) -> None:
        place = route.request.url.removeprefix(HOST)
        asked.append(place)
        if place == "/mirrors/17/events/":
            route.fulfill(body=TOLD, content_type="text/event-stream")
        else:
            text = f"<!doctype html><html lang=en><progress id=bar></progress><script>{script}</script>"
            route.fulfill(body=text, content_type="text/html")

    page.route(f"{HOST}/**", answer)
    page.goto(f"{HOST}/mirror")
    page.wait_for_function("document.getElementById('bar').value === 1")
    page.wait_for_function("events.readyState === EventSource.CLOSED")
    assert asked.count("/mirrors/17/events/") == 1
    page.close()
