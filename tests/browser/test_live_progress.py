"""The page of an execution follows it without being loaded again."""

from playwright.sync_api import expect

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from tests.browser.conftest import OpenPage
from tests.integration.sample_executions import made


def test_the_bar_of_an_execution_grows_without_a_reload(open_page: OpenPage) -> None:
    execution, tasks = made(10)
    page = open_page(f"/admin/harbor_executions/execution/{execution.pk}/change/")
    page.evaluate("window.notLoadedAgain = true")
    panel = page.locator("#execution-panel")
    expect(panel).to_contain_text("0 of 10 tasks have ended.")
    widths = []
    for ended in (3, 7, 10):
        report(Report(pk, "Success", 1) for pk in tasks[:ended])
        expect(panel).to_contain_text(f"{ended} of 10 tasks have ended.")
        widths.append(panel.locator(".harbor-success").evaluate("bar => bar.style.width"))
    assert widths == ["30%", "70%", "100%"]
    expect(panel.get_by_role("status")).to_have_text("Success")
    expect(panel.get_by_role("list")).to_contain_text("Running")
    assert page.evaluate("window.notLoadedAgain")
    assert Task.objects.filter(execution=execution, status="Success").count() == 10
