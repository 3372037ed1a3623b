"""3,000 executions are stopped by a filter, in the background, and the bar of the action grows without a reload.

The worker waits for a locked task in between, so that the page shows the bar there however quick the machine is.
"""

import pytest
from playwright.sync_api import expect

from harbor_refresh.executions.models import Execution, Task
from tests.browser.acting import EXECUTIONS, choose_all, run_on_rows
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.integration.concurrency import transaction_held_open
from tests.integration.operations.actions.sample_bulk import ELSEWHERE, with_jobs
from tests.integration.sample_actions import actions, result

COUNT = 3_000
VENDOR = "THOUSANDS"


@pytest.mark.slow
def test_three_thousand_executions_are_stopped_by_a_filter_while_a_bar_grows(
    open_page: OpenPage, service: Service
) -> None:
    service.start_worker()
    middle = with_jobs(COUNT, VENDOR, queue=ELSEWHERE)[COUNT // 2]
    page = open_page(f"{EXECUTIONS}?vendor={VENDOR}")
    choose_all(page)
    run_on_rows(page, "Stop")
    expect(page.get_by_text("Stop 3,000 executions?")).to_be_visible()
    panel = page.locator("#execution-panel")
    with transaction_held_open(lambda: list(Task.objects.select_for_update().filter(execution=middle))):
        page.get_by_role("button", name="Stop 3,000 executions").click()
        expect(panel).to_contain_text("3 of 7 tasks have ended.")
        page.evaluate("window.notLoadedAgain = true")
    expect(panel).to_contain_text("7 of 7 tasks have ended.")
    expect(panel.get_by_role("status")).to_have_text("Success")
    expect(page.get_by_text("3,000 changed, 0 left as they are, 0 failed.")).to_be_visible()
    assert page.evaluate("window.notLoadedAgain")
    rows = Execution.objects.filter(vendor_type=VENDOR)
    assert set(rows.values_list("status", flat=True)) == {"Stopped"}
    action = actions().latest("pk")
    assert result(action) == {"status": "Success", "changed": COUNT}
    assert action.extra_attrs["by"] == "operator"
