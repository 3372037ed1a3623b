"""Beat's schedule: a row is disabled, enabled and run by hand."""

from django_celery_beat.models import PeriodicTask
from playwright.sync_api import expect

from tests.browser.acting import run_on_rows
from tests.browser.acts import acts
from tests.browser.conftest import OpenPage

SCHEDULE = "/admin/django_celery_beat/periodictask/"


@acts(
    "periodictask.disable_tasks",
    "periodictask.enable_tasks",
    "periodictask.toggle_tasks",
    "periodictask.run_tasks",
)
def test_a_row_is_disabled_enabled_and_run(open_page: OpenPage) -> None:
    row = PeriodicTask.objects.get(task="tasks.sample")
    page = open_page(SCHEDULE, "administrator")

    def act(action: str) -> None:
        page.get_by_role("row").filter(has_text=row.name).get_by_role("checkbox").check()
        run_on_rows(page, action)

    for action, is_enabled in (
        ("Disable", False),
        ("Enable what is disabled, and disable the rest", True),
        ("Disable", False),
        ("Enable", True),
    ):
        act(action)
        expect(page.get_by_text("1 task was successfully").first).to_be_visible()
        row.refresh_from_db()
        assert row.enabled is is_enabled
        page.goto(SCHEDULE)
    act("Run now")
    expect(page.get_by_text("1 task was successfully run")).to_be_visible()
