"""The secret of a webhook is rotated on its page: a question, one rotation, and the new secret, shown once."""

import re

from playwright.sync_api import expect

from harbor_refresh.executions.models import Subscription
from tests.browser.acting import press
from tests.browser.acts import acts
from tests.browser.axe import must_be_usable
from tests.browser.conftest import OpenPage
from tests.browser.service import Service


@acts("subscription.rotate on its page")
def test_a_secret_is_rotated_and_shown_once(open_page: OpenPage, service: Service) -> None:
    row = Subscription.objects.create(name="rotated", url="https://hooks.example.com/r", secret="whsec_b2xk")
    address = f"/admin/harbor_executions/subscription/{row.pk}/change/"
    page = open_page(address, "administrator")
    press(page, "Rotate the secret")
    must_be_usable(page)
    page.get_by_label("The old secret signs as well").select_option(label="for an hour")
    page.get_by_role("button", name="Rotate").click()
    expect(page.get_by_role("heading", name="The secret of rotated")).to_be_visible()
    row.refresh_from_db()
    expect(page.get_by_label("The secret of rotated")).to_have_text(row.secret)
    assert row.live_secrets == [row.secret, "whsec_b2xk"]
    expect(page.get_by_role("button", name="Rotate")).to_have_count(0)
    must_be_usable(page)
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text(re.compile("2 secrets until"))).to_be_visible()
    assert row.secret not in page.content()
    assert Subscription.objects.get(pk=row.pk).secret == row.secret
    row.delete()
