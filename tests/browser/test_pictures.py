"""`make pictures`: renew the pictures of the admin in docs/images, from a service that has had two minutes of demo
traffic and a killed worker.

The picture of a page is a PNG of 256 colours, so the folder stays small.
"""

import io
import sys
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from harbor_refresh.executions.models import Execution
from tests.browser.acting import EXECUTIONS, page_of
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.browser.sizes import PHONE
from tests.waiting import wait_for

pytestmark = pytest.mark.pictures

IMAGES = Path(__file__).resolve().parents[2] / "docs/images"
COLOURS = 256
TRAFFIC = {"demo": ["-m", "examples.simulation", "--demo"], "mirrors": ["-m", "examples.traffic"]}
ENOUGH = 60
FOR_A_WHILE = 75_000


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


def take(page: Page, name: str, *, height: int, width: int = 1280) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLOURS, kmeans=2, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
