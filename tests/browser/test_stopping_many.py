"""An action on many executions is stopped while it runs, and goes on where it ended.

The worker waits for a locked task of the second page, and is halted there, so that the action can be stopped
however quick the machine is.
"""

import signal

from playwright.sync_api import expect

from harbor_refresh.executions.models import Action, AuditEntry, Execution, Task
from tests.browser.acting import EXECUTIONS, choose_all, confirm, run_on_rows
from tests.browser.acts import acts
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.integration.concurrency import transaction_held_open
from tests.integration.operations.actions.sample_bulk import ELSEWHERE, with_jobs
from tests.waiting import wait_for

COUNT = 1_200
VENDOR = "HALTED"


@acts("action.stop on its page", "action.resume on its page")
def test_an_action_on_many_is_stopped_while_it_runs_and_goes_on(open_page: OpenPage, service: Service) -> None:
    worker = service.start_worker()
    middle = with_jobs(COUNT, VENDOR, queue=ELSEWHERE)[COUNT // 2]
    page = open_page(f"{EXECUTIONS}?vendor={VENDOR}")
    choose_all(page)
    run_on_rows(page, "Stop")
    with transaction_held_open(lambda: list(Task.objects.select_for_update().filter(execution=middle))):
        page.get_by_role("button", name="Stop 1,200 executions").click()
        wait_for(lambda: 0 < Action.objects.latest("pk").done < COUNT, "the worker to be at it")
        worker.signal(signal.SIGSTOP)
    try:
        confirm(page, "Stop this action", "Stop")
        expect(page.get_by_text("Stopping", exact=True)).to_be_visible()
    finally:
        worker.signal(signal.SIGCONT)
    expect(page.get_by_text("Stopped", exact=True).first).to_be_visible()
    stopped = Action.objects.latest("pk")
    rows = Execution.objects.filter(vendor_type=VENDOR)
    assert (stopped.state, stopped.done) == ("stopped", rows.filter(status="Stopped").count())
    assert 0 < stopped.done < COUNT
    confirm(page, "Go on", "Go on")
    expect(page.get_by_text("1,200 of 1,200 executions")).to_be_visible()
    assert rows.filter(status="Stopped").count() == COUNT
    entries = AuditEntry.objects.filter(kind="action", target=str(stopped.pk)).order_by("pk")
    assert list(entries.values_list("by", "verb")) == [("operator", "stop"), ("operator", "resume")]
