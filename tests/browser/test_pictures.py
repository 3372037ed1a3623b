"""`make pictures`: renew the pictures of the admin in docs/images, from a service that has had two minutes of demo
traffic and a killed worker; and the recording of 10,000 jobs, two workers and a `kill -9`.

The picture of a page is a PNG of 256 colours, and the recording a GIF of 64, so the folder stays small.
"""

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest
from celery import chain, chord
from django.utils.html import escape
from PIL import Image
from playwright.sync_api import Page, expect

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from tests.browser.acting import EXECUTIONS, page_of
from tests.browser.conftest import OpenPage
from tests.browser.mirror_jobs import build, copy, fetch, publish, scan
from tests.browser.service import Service
from tests.browser.sizes import PHONE
from tests.waiting import wait_for

pytestmark = pytest.mark.pictures

IMAGES = Path(__file__).resolve().parents[2] / "docs/images"
COLOURS = 256
TRAFFIC = {"demo": ["-m", "examples.simulation", "--demo"], "mirrors": ["-m", "examples.traffic"]}
ENOUGH = 60
FOR_A_WHILE = 75_000
STATUS = [sys.executable, "manage.py", "harbor", "status"]
TYPED = (
    "<pre style='margin:0;padding:20px;background:#111;color:#eee;font:15px/1.45 monospace;white-space:pre-wrap'>"
    "$ {}\n{}</pre>"
)


@pytest.fixture
def traffic(service: Service) -> None:
    """Demo executions for a while; then a worker is killed, and another one goes on."""
    jobs = service.cluster.worker("jobs", queues=["examples"], include=["examples.mirror"])
    for name, arguments in TRAFFIC.items():
        service.cluster.start(name, [sys.executable, *arguments])
    worker = service.start_worker()
    service.cluster.worker("second")
    ended = Execution.objects.filter(end_time__isnull=False)
    wait_for(lambda: ended.count() > ENOUGH, "executions to end")
    worker.kill()
    assert not jobs.died()


def test_pictures_of_the_admin(open_page: OpenPage, service: Service, traffic: None) -> None:
    page = open_page("/admin/", "root", reduced_motion="no-preference")
    expect(page.locator("[data-part=events]")).to_contain_text("died")
    page.wait_for_timeout(FOR_A_WHILE)
    take(page, "admin-dashboard", height=1500)
    page.emulate_media(color_scheme="dark")
    page.reload()
    take(page, "admin-dashboard-dark", height=900)
    page.emulate_media(color_scheme="light")
    page.goto(EXECUTIONS)
    take(page, "admin-executions", width=1440, height=820)
    running = Execution.objects.filter(vendor_type="REPLICATION", tasks__status="Error").latest("pk")
    page.goto(page_of(running))
    expect(page.locator("#its-place")).not_to_contain_text("Asking the queue")
    take(page, "admin-execution", height=1250)
    page.goto("/admin/harbor_tasks/pause/")
    take(page, "admin-queue", height=900)
    page.goto("/admin/harbor_executions/task/errors/")
    take(page, "admin-errors", height=760)
    page.goto("/admin/")
    take(page, "admin-phone", width=PHONE["width"], height=PHONE["height"])
    printed = subprocess.run(STATUS, env=service.cluster.env, capture_output=True, text=True, check=True).stdout
    page.set_viewport_size({"width": 1500, "height": 900})
    page.set_content(TYPED.format("python manage.py harbor status", escape(printed)))
    save(page.locator("pre").screenshot(), "harbor-status")


def test_a_picture_of_a_graph(open_page: OpenPage, service: Service) -> None:
    worker = service.cluster.worker(
        "builds", concurrency=3, queues=["builds"], include=["tests.browser.mirror_jobs"]
    )
    each = [chain(build.s(platform), scan.s()) for platform in ("amd64", "arm64", "s390x")]
    jobs = chain(fetch.s(), chord(each, publish.s()))
    for one in (fetch, build, scan, publish):
        one.queue = "builds"
    execution = start("BUILD", jobs=[jobs])
    wait_for(lambda: execution.progress().counts.get("Success") == 3, "amd64 to be scanned", log=worker.log)
    page = open_page(page_of(execution), "root")
    expect(page.locator("#its-place")).not_to_contain_text("Asking the queue")
    page.set_viewport_size({"width": 1280, "height": 1600})  # the bar at the bottom is below the graph
    page.wait_for_timeout(500)
    save(page.locator("svg[role=group]").first.screenshot(), "admin-graph")


#: Seconds between two frames, and how long each is shown.
STEP, SHOWN_MS = 0.5, 150
#: It puts what is typed in a terminal below the page.
TERMINAL = """text => {
    const line = document.getElementById("terminal") || document.body.appendChild(document.createElement("pre"));
    line.id = "terminal";
    line.style = "position:fixed;z-index:99;inset:auto 0 0 0;margin:0;padding:12px 20px;background:#111;"
        + "color:#eee;font:15px/1.4 monospace";
    line.textContent = text;
}"""


def test_a_recording_of_a_killed_worker(open_page: OpenPage, service: Service) -> None:
    one, two = (
        service.cluster.worker(name, queues=["mirror"], include=["tests.browser.mirror_jobs"])
        for name in ("one", "two")
    )
    for member in (one, two):
        wait_for(lambda member=member: " ready." in member.text(), "the workers to be ready", log=member.log)
    jobs = (copy.s(f"library/alpine:{number}").set(queue="mirror") for number in range(10_000))
    execution = start("nightly mirror", jobs=jobs)
    page = open_page(page_of(execution), "root", reduced_motion="no-preference")
    page.set_viewport_size({"width": 1000, "height": 500})
    frames: list[Image.Image] = []
    typed = '>>> start("nightly mirror", jobs=[copy.s(artifact) for artifact in artifacts])  # 10,000'

    def record() -> None:
        page.evaluate(TERMINAL, typed)
        frames.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
        time.sleep(STEP)  # the time between two frames

    def done() -> float:
        return execution.progress().share

    while done() < 0.3:
        record()
    one.kill()
    typed += f"\n$ kill -9 {one.process.pid}  # a worker with two processes, and what it runs"
    while done() < 1:
        record()
    execution.wait(timeout=60)
    typed += "\n>>> execution.wait()\n'Success'"
    page.reload()
    for _ in range(10):
        record()
    first, *others = [
        frame.resize((800, 400)).quantize(64, kmeans=1, dither=Image.Dither.NONE) for frame in frames
    ]
    first.save(
        IMAGES / "killed-worker.gif", save_all=True, append_images=others, duration=SHOWN_MS, loop=0, optimize=True
    )


def take(page: Page, name: str, *, height: int, width: int = 1280) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    save(page.screenshot(), name)


def save(png: bytes, name: str) -> None:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, kmeans=2, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
