"""An action on many executions is stopped while it runs, and goes on where it ended.

The worker waits for a locked task of the second range, so that the action can be stopped however quick the machine
is.
"""

import re

import pytest
from playwright.sync_api import expect

from harbor_refresh.executions.models import AuditEntry, Execution, Task
from harbor_refresh.tasks.models.job import Job, State
from tests.browser.acting import EXECUTIONS, choose_all, confirm, run_on_rows
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.integration.concurrency import transaction_held_open
from tests.integration.operations.actions.sample_bulk import ELSEWHERE, with_jobs
from tests.integration.sample_actions import actions
from tests.waiting import wait_for

COUNT = 1_200
VENDOR = "HALTED"


@pytest.mark.slow
def test_an_action_on_many_is_stopped_while_it_runs_and_goes_on(open_page: OpenPage, service: Service) -> None:
    service.start_worker()
    middle = with_jobs(COUNT, VENDOR, queue=ELSEWHERE)[COUNT // 2]
    stopped = Execution.objects.filter(vendor_type=VENDOR, status="Stopped")
    page = open_page(f"{EXECUTIONS}?vendor={VENDOR}")
    choose_all(page)
    run_on_rows(page, "Stop")
    with transaction_held_open(lambda: list(Task.objects.select_for_update().filter(execution=middle))):
        page.get_by_role("button", name="Stop 1,200 executions").click()
        wait_for(lambda: stopped.count() >= 500, "the first range to end")
        confirm(page, "Stop", "Stop")
        expect(page.locator("#execution-panel")).to_contain_text("stopped")
    action = actions().latest("pk")
    wait_for(lambda: not Job.objects.filter(state=State.RUNNING).exists(), "the run to end")
    assert 500 <= stopped.count() <= 1_000
    confirm(page, "Resume stopped jobs", "Resume")
    expect(page.locator("#execution-panel")).to_contain_text(
        re.compile(r"Success\s+(\d+) of \1 tasks have ended\.")
    )
    assert stopped.count() == COUNT
    entries = AuditEntry.objects.filter(target=str(action.pk)).order_by("pk")
    assert list(entries.values_list("by", "verb", "kind")) == [
        ("operator", "stop", "executions"),
        ("operator", "stop", "execution"),
        ("operator", "resume", "execution"),
    ]
