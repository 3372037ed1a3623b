"""What programs get: an API token, which is shown once and revoked, and a subscription, which is added, changed,
tested and deleted, and whose dead letters are sent again."""

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Page, expect

from harbor_refresh.executions.models import ApiToken, Delivery, Subscription
from harbor_refresh.executions.models.notifications import State
from tests.browser.acting import add_link, choose_rows, confirm_on_rows, run_on_rows
from tests.browser.acts import acts
from tests.browser.conftest import OpenPage
from tests.browser.samples import dead_letter
from tests.browser.service import Service
from tests.integration.executions.deliveries.receiver import Receiver, receiver
from tests.integration.sample_executions import made
from tests.waiting import wait_for

TOKENS = "/admin/harbor_executions/apitoken/"
SUBSCRIPTIONS = "/admin/harbor_executions/subscription/"
DELIVERIES = "/admin/harbor_executions/delivery/"
NAME = "the browser's receiver"


@pytest.fixture
def portal() -> Iterator[Receiver]:
    with receiver() as one:
        yield one
        Subscription.objects.filter(name__startswith=NAME).delete()


def shown_once(page: Page) -> str:
    return page.locator("pre").inner_text().strip()


@acts("apitoken.add", "apitoken.revoke")
def test_a_token_is_shown_once_opens_the_api_and_is_revoked(open_page: OpenPage, service: Service) -> None:
    page = open_page(TOKENS, "administrator")
    add_link(page, TOKENS).click()
    page.get_by_label("Name").fill("a program of the browser")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("This is the only time that the token is shown.")).to_be_visible()
    token = shown_once(page)

    def answer() -> int:
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{service.url}/api/v1/executions"
        return httpx2.get(url, headers=headers, trust_env=False, timeout=60).status_code

    assert answer() == 200
    page.goto(f"{TOKENS}?q=a+program+of+the+browser")
    assert token not in page.content()
    choose_rows(page)
    confirm_on_rows(page, "Revoke", "Revoke 1 API token")
    expect(page.get_by_text("a program of the browser is revoked")).to_be_visible()
    assert answer() == 401
    assert ApiToken.objects.get(name="a program of the browser").revoked_at is not None


@acts(
    "subscription.add",
    "subscription.change",
    "subscription.send_test",
    "subscription.delete_chosen",
    "delivery.send_again",
    "delivery.send_all_again",
)
def test_a_subscription_is_added_tested_and_changed_its_dead_letters_sent_and_all_of_it_deleted(
    open_page: OpenPage, service: Service, portal: Receiver
) -> None:
    service.start_worker()
    page = open_page(SUBSCRIPTIONS, "administrator")
    add_link(page, SUBSCRIPTIONS).click()
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Url").fill(portal.url)
    page.get_by_label("Vendor types").fill("TOLD")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("This is the only time that the secret is shown.")).to_be_visible()
    assert shown_once(page) == Subscription.objects.get(name=NAME).secret
    page.goto(f"{SUBSCRIPTIONS}?q=browser")
    choose_rows(page)
    run_on_rows(page, "Send a test")
    expect(page.get_by_text(f"{NAME} answered 204.")).to_be_visible()
    assert len(portal.received) == 1
    page.get_by_role("link", name=NAME).click()
    page.get_by_label("Name").fill(f"{NAME} in Berlin")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name=f"{NAME} in Berlin").first).to_be_visible()

    subscription = Subscription.objects.get(name=f"{NAME} in Berlin")
    letters = [dead_letter(subscription, made(1, "TOLD")[0], 1, "Success") for _ in range(3)]
    page.goto(f"{DELIVERIES}?subscription__id__exact={subscription.pk}")
    page.locator(f"input[name=_selected_action][value='{letters[0].pk}']").check()
    run_on_rows(page, "Send again")
    expect(page.get_by_text("1 dead letter is sent again.")).to_be_visible()
    wait_for(lambda: len(portal.received) == 2, "the first letter to arrive")
    page.locator(f"input[name=_selected_action][value='{letters[1].pk}']").check()
    run_on_rows(page, "Send all dead letters of these subscriptions again")
    expect(page.get_by_text("2 dead letters are sent again.")).to_be_visible()
    delivered = Delivery.objects.filter(subscription=subscription, state=State.DELIVERED)
    wait_for(lambda: delivered.count() == 3, "the letters to arrive")
    assert len(portal.received) == 4

    page.goto(f"{SUBSCRIPTIONS}?q=browser")
    choose_rows(page)
    confirm_on_rows(page, "Delete with all deliveries", "Delete 1 subscription")
    expect(page.get_by_text(f"{NAME} in Berlin is deleted.")).to_be_visible()
    assert not Delivery.objects.filter(subscription_id=subscription.pk).exists()
