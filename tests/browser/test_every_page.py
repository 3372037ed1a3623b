"""Each page of the admin, looked at light, dark and on a phone: axe finds no serious violation, no page logs an
error, and none must be moved sideways on a phone."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.models import Pause
from tests.browser.acting import press
from tests.browser.axe import must_be_usable
from tests.browser.conftest import OpenPage
from tests.browser.samples import Samples, make_samples
from tests.browser.service import Service
from tests.integration.sample_executions import made
from tests.variants import variants

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
#: The lists and rows of these are looked at by `make test`, those of the others by `make slow`.
OFTEN_SEEN = {"execution"}
LISTS = [
    pytest.param(model, marks=[pytest.mark.slow] * (model._meta.model_name not in OFTEN_SEEN)) for model in MODELS
]
ROWS = [one for one in LISTS if one.values != (Pause,)]
EXECUTION, TASK = "/admin/harbor_executions/execution/", "/admin/harbor_executions/task/"
#: Pages beside the lists and rows of the models. In braces: ids of the samples.
PAGES = {
    "dashboard": "/admin/",
    "running execution": EXECUTION + "{running}/change/",
    "errors": TASK + "errors/",
    "list of failed tasks": TASK + "?status__exact=Error",
    "executions that a search does not find": EXECUTION + "?q=nothing+of+that+name",
    "question before a pause": "/admin/harbor_tasks/pause/?verb=pause&target=harbor_refresh",
    "change of the password": "/admin/password_change/",
}


@pytest.fixture(scope="package")
def samples(service: Service) -> Samples:
    return make_samples()


def address_of(model: type[Model], page: str, *arguments: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=arguments)


@pytest.mark.parametrize("name", variants(*PAGES))
def test_a_page_beside_the_lists_has_no_serious_violation(
    name: str, open_page: OpenPage, samples: Samples
) -> None:
    address = PAGES[name].format(running=samples.running.pk, failed=samples.failed.pk)
    must_be_usable(open_page(address, "root"))


@pytest.mark.parametrize("model", LISTS, ids=lambda model: model._meta.model_name)
def test_a_list_has_no_serious_violation(model: type[Model], open_page: OpenPage, samples: Samples) -> None:
    must_be_usable(open_page(address_of(model, "changelist"), "root"))


@pytest.mark.parametrize("model", ROWS, ids=lambda model: model._meta.model_name)
def test_the_page_of_a_row_has_no_serious_violation(
    model: type[Model], open_page: OpenPage, samples: Samples
) -> None:
    must_be_usable(open_page(address_of(model, "change", samples.rows[model].pk), "root"))


def test_the_list_of_executions_is_not_moved_sideways(open_page: OpenPage, service: Service) -> None:
    wide, _ = made(1, "GARBAGE_COLLECTION_OF_ALL")
    quarantine([wide.pk], 5)
    Execution.objects.filter(pk=wide.pk).update(start_time=timezone.now() - timedelta(hours=59))
    page = open_page(f"{EXECUTION}?vendor={wide.vendor_type}", "root")
    table = page.locator("#result_list")
    expect(table).to_contain_text("Quarantined")
    hidden = "table => table.scrollWidth - table.closest('.simplebar-content-wrapper').clientWidth"
    assert table.evaluate(hidden) <= 0


def test_the_page_of_errors_is_named_so_in_the_heading_and_in_the_sidebar(open_page: OpenPage) -> None:
    page = open_page(PAGES["errors"], "viewer")
    expect(page.get_by_role("heading", level=1)).to_have_text("Errors")
    expect(page.get_by_role("link").and_(page.locator(".active"))).to_have_text(re.compile("Errors"))


def test_a_question_has_no_serious_violation(open_page: OpenPage, samples: Samples) -> None:
    page = open_page(PAGES["running execution"].format(running=samples.running.pk), "root")
    press(page, "Stop")
    must_be_usable(page)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)
def test_the_forms_that_add_and_delete_have_no_serious_violation(
    model: type[Model], open_page: OpenPage, samples: Samples
) -> None:
    pages = []
    if admin.site._registry[model].has_add_permission(request := as_root()):
        pages.append(address_of(model, "add"))
    if model in samples.rows and admin.site._registry[model].has_delete_permission(request):
        pages.append(address_of(model, "delete", samples.rows[model].pk))
    for page in pages:
        must_be_usable(open_page(page, "root"))


def as_root() -> HttpRequest:
    request = RequestFactory().get("/admin/")
    request.user = User.objects.get(username="root")
    return request


def test_the_login_and_an_unknown_page_have_no_serious_violation(open_page: OpenPage) -> None:
    must_be_usable(open_page("/admin/", ""))
    unknown = open_page("/admin/nothing/", "root")
    must_be_usable(unknown)
    assert "harbor_executions" not in unknown.content()


def test_each_model_of_the_admin_has_a_sample(samples: Samples) -> None:
    """So that a new page is looked at here."""
    assert [model for model in MODELS if model not in samples.rows] == [Pause]
