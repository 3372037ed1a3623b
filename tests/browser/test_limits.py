"""The screen of limits: an administrator changes one, and resets it to what the code says."""

from playwright.sync_api import expect

from harbor_refresh.tasks.models import Limit
from tests.browser.acting import run_on_rows
from tests.browser.acts import acts
from tests.browser.conftest import OpenPage

LIMITS = "/admin/harbor_tasks/limit/"


@acts("limit.change", "limit.reset")
def test_a_limit_is_changed_and_reset(open_page: OpenPage) -> None:
    declared = {"concurrency": 10, "rate": None, "per": 60}
    row = Limit.objects.create(name="registry.push", concurrency=10, declared=declared)
    page = open_page(f"{LIMITS}{row.pk}/change/", "administrator")
    page.get_by_label("Concurrency").fill("3")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully").first).to_be_visible()
    row.refresh_from_db()
    assert (row.concurrency, bool(row.changed_by)) == (3, True)

    page.get_by_role("row").filter(has_text=row.name).get_by_role("checkbox").check()
    run_on_rows(page, "Reset to the declared limit")
    expect(page.get_by_text("1 limit reset.").first).to_be_visible()
    row.refresh_from_db()
    assert (row.concurrency, row.changed_by) == (10, "")
