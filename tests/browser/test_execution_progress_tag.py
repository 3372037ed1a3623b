"""{% execution_progress execution events=… %} on a page of a host: its script keeps the bar true."""

import json
from pathlib import Path

from django.template import Context, Template
from playwright.sync_api import Browser, Route, expect

import executions
from executions.creation import NewExecution, NewTask, create
from tests.browser.conftest import MILLISECONDS
from tests.browser.service import Service

SCRIPT = Path(executions.__file__).with_name("static") / "executions/progress.js"
HOST = "http://host.test"


def test_the_bar_follows_the_events_to_the_end(browser: Browser, service: Service) -> None:
    execution = create(NewExecution("REPLICATION", tasks=[NewTask()] * 4))
    text = "{% load harbor_refresh %}{% execution_progress execution events='/events/' %}"
    shown = Template(text).render(Context({"execution": execution}))
    told = (
        ("progress", {"status": "Running", "progress": 0.5, "done": 2, "tasks": 4, "seconds_left": 7_300}),
        ("end", {"status": "Success", "progress": 1, "done": 4, "tasks": 4, "seconds_left": None}),
    )
    page = browser.new_page()
    page.set_default_timeout(MILLISECONDS)
    asked: list[str] = []

    def answer(route: Route) -> None:
        place = route.request.url.removeprefix(HOST)
        asked.append(place)
        if place == "/events/":
            events = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in told]
            route.fulfill(body="".join(events), content_type="text/event-stream")
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
