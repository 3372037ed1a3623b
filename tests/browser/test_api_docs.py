"""The page of the API: it needs this service alone, and an operation can be tried on it with a token."""

import re

from playwright.sync_api import Page, Route, expect

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import Execution
from tests.browser.conftest import OpenPage
from tests.browser.service import Service
from tests.browser.sizes import PHONE
from tests.integration.executions.api.api_client import token

DOCS = "/api/v1/docs"


def operation(page: Page, summary: str) -> None:
    """Open an operation by its summary."""
    page.get_by_role("button", name=summary).first.click()


def test_an_operation_is_tried_with_a_token_and_without_the_network(open_page: OpenPage, service: Service) -> None:
    elsewhere: list[str] = []

    def refuse(route: Route) -> None:
        if route.request.url.startswith((service.url, "data:")):
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    page = open_page("about:blank", "")
    page.context.route("**/*", refuse)
    page.goto(DOCS)
    expect(page.get_by_role("heading", name=re.compile("Harbor Refresh"))).to_be_visible()
    page.get_by_role("button", name="Authorize").first.click()
    form = page.locator(".auth-container form").filter(has_text="Bearer")
    form.get_by_role("textbox").fill(token(Scope.REPORT))
    form.get_by_role("button", name="Apply credentials").click()
    form.get_by_role("button", name="Close").click()
    operation(page, "Create an execution with its tasks")
    with page.expect_response("**/api/v1/executions") as answered:
        page.get_by_role("button", name="Execute").click()
    assert answered.value.status == 201
    expect(page.locator(".live-responses-table").get_by_text("201")).to_be_visible()
    assert Execution.objects.get(pk=answered.value.json()["id"]).vendor_type == "REPLICATION"
    assert elsewhere == []


def test_the_page_follows_the_colours_of_the_system_and_fits_a_phone(open_page: OpenPage) -> None:
    page = open_page(DOCS, "", viewport=PHONE, color_scheme="dark")
    expect(page.get_by_text("List executions, the newest first")).to_be_visible()
    expect(page.locator("html.dark-mode")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.emulate_media(color_scheme="light")
    expect(page.locator("html.dark-mode")).to_have_count(0)
