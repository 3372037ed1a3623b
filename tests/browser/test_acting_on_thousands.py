"""3,000 executions are stopped by a filter, in the background, and the bar of the action grows without a reload.

The worker waits for a locked task in between, so that the page shows the bar there however quick the machine is.
"""

import re

import pytest
from playwright.sync_api import expect

from harbor_refresh.executions.models import Action, Execution, Task
from tests.browser.acting import EXECUTIONS, choose_all, run_on_rows
from tests.browser.acts import acts
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.integration.concurrency import transaction_held_open
from tests.integration.operations.actions.sample_bulk import ELSEWHERE, with_jobs
from tests.waiting import wait_for

COUNT = 3_000
VENDOR = "THOUSANDS"
#: More than nothing, less than all.
BETWEEN = re.compile(r"^(?!0(\.0)?$)\d{1,2}(\.\d+)?$")
#: A script for each page that is loaded: it tells the percent of the bar whenever that changes.
TELL_EACH_WIDTH = """
    let last = null;
    new MutationObserver(() => {
        const now = document.querySelector("[data-percent]")?.dataset.percent ?? last;
        if (now !== last) {
            last = now;
            window.barIsAt(Number(now));
        }
    }).observe(document, {childList: true, subtree: true});
"""


@pytest.mark.slow
@acts("execution.stop")
def test_three_thousand_executions_are_stopped_by_a_filter_while_a_bar_grows(
    open_page: OpenPage, service: Service
) -> None:
    service.start_worker()
    middle = with_jobs(COUNT, VENDOR, queue=ELSEWHERE)[COUNT // 2]
    page = open_page(f"{EXECUTIONS}?vendor={VENDOR}")
    widths: list[float] = []
    page.expose_function("barIsAt", lambda width: widths.append(width))  # noqa: PLW0108  # playwright marks it
    page.add_init_script(TELL_EACH_WIDTH)
    choose_all(page)
    run_on_rows(page, "Stop")
    expect(page.get_by_text("Stop 3,000 executions?")).to_be_visible()
    with transaction_held_open(lambda: list(Task.objects.select_for_update().filter(execution=middle))):
        page.get_by_role("button", name="Stop 3,000 executions").click()
        wait_for(lambda: 0 < Action.objects.latest("pk").done < COUNT, "the worker to be at it")
        expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", BETWEEN)
    expect(page.get_by_text("3,000 of 3,000 executions")).to_be_visible()
    wait_for(lambda: Action.objects.latest("pk").state == "done", "the action to say that it is done")
    assert widths == sorted(widths)
    assert len(widths) >= 2, "it stands somewhere between, and at its end"
    rows = Execution.objects.filter(vendor_type=VENDOR)
    assert dict(rows.values_list("status").distinct().values_list("status", "vendor_type")) == {"Stopped": VENDOR}
    action = Action.objects.latest("pk")
    assert (action.state, action.done, action.changed, action.requested_by) == ("done", COUNT, COUNT, "operator")
