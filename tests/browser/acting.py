"""What a person does with the mouse, in the words of the admin."""

import re

from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import TrackedExecution, start
from tests.browser.service import Service
from tests.waiting import wait_for

EXECUTIONS = "/admin/harbor_executions/execution/"


def page_of(execution: Execution | TrackedExecution) -> str:
    return reverse("admin:harbor_executions_execution_change", args=[execution.pk])


def started(service: Service, job: object, vendor: str = "SCAN") -> TrackedExecution:
    """An execution of one job, and a worker that takes it."""
    service.start_worker()
    return start(vendor, jobs=[job])


def status_becomes(execution: Execution | TrackedExecution, status: str) -> None:
    rows = Execution.objects.filter(pk=execution.pk, status=status)
    wait_for(rows.exists, f"execution {execution.pk} to be {status}")


def shown_status(page: Page) -> Locator:
    """The status in the panel of an execution."""
    return page.locator("#execution-panel").get_by_role("status")


def add_link(page: Page, address: str) -> Locator:
    """How a row is added to the list at this address: by words in an empty list, by an icon in another one."""
    return page.locator(f"a[href='{address}add/']").first


def action_of(page: Page, name: str) -> Locator:
    """An action of a page."""
    return page.get_by_role("link", name=name, exact=True)


def press(page: Page, action: str) -> None:
    """Press an action of a page. A page asks whether it is meant."""
    action_of(page, action).click()
    expect(page.get_by_role("link", name="Cancel")).to_be_visible()


def confirm(page: Page, action: str, submit: str) -> None:
    """Press an action, and say yes."""
    press(page, action)
    with page.expect_navigation():
        page.get_by_role("button", name=submit, exact=True).click()


def confirm_on_rows(page: Page, action: str, submit: str) -> None:
    """Run an action on the rows that are chosen, and say yes on the page that asks."""
    run_on_rows(page, action)
    page.get_by_role("button", name=submit, exact=True).click()


def choose_rows(page: Page) -> None:
    """Choose all rows of the page."""
    page.locator("#action-toggle").check()


def choose_all(page: Page) -> None:
    """Choose all rows that match, on all pages."""
    choose_rows(page)
    page.get_by_role("link", name=re.compile("Choose all that match")).click()
    expect(page.get_by_text("All that match are chosen")).to_be_visible()


def run_on_rows(page: Page, action: str) -> None:
    """Run an action on the rows that are chosen. A page asks whether it is meant."""
    page.locator("select[name=action]").select_option(label=action)
    page.get_by_role("button", name=re.compile("^Run")).click()
