"""Each action of the admin is done by a test in the browser: a new one without such a test fails here."""

from importlib import import_module
from pathlib import Path

from django.contrib import admin
from django.urls import URLPattern

from tests.browser.acts import DONE_BY, acts_of_the_admin

#: Of the screen of a model: its list, its forms and its rows, which test_every_page.py opens.
OF_A_MODEL = ("changelist", "add", "history", "delete", "change")
#: Pages and parts of pages that no model of Django has, and the tests that open them.
OTHERS = {
    "harbor_executions_task_errors": "test_every_page",
    "harbor_executions_execution_panel": "test_live_progress",
    "harbor_executions_execution_running": "test_progress_of_jobs",
    "harbor_executions_execution_place": "test_pictures",
    "harbor_tasks_pause_live": "test_queue_page",
    "auth_user_password_change": "test_every_page",
}


def test_each_action_of_each_page_is_done_by_a_test_in_the_browser() -> None:
    for path in Path(__file__).parent.glob("test_*.py"):
        import_module(f"tests.browser.{path.stem}")
    assert acts_of_the_admin() == set(DONE_BY)


def test_each_page_of_the_admin_is_opened_by_a_test_in_the_browser() -> None:
    found = set()
    for model, screen in admin.site._registry.items():
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        usual = {f"{name}_{page}" for page in OF_A_MODEL}
        acts = {f"{name}_{act}" for act in getattr(screen, "page_actions", ())}
        named = {one.name for one in screen.get_urls() if isinstance(one, URLPattern) and one.name}
        found |= named - usual - acts
    assert found == set(OTHERS)
