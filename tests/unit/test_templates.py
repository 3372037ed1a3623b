"""Each class in our HTML has a rule: unfold's stylesheet holds only the classes that unfold itself uses."""

import re
from pathlib import Path

import pytest
import unfold
from django.conf import settings
from django.templatetags.static import static

from harbor_refresh.executions.admin.base import media
from tests.pages import ROOT

APPS = ("executions", "tasks", "harbor_refresh")
STYLES = [
    *Path(unfold.__path__[0]).glob("static/unfold/**/*.css"),
    *(path for app in APPS for path in ROOT.glob(f"{app}/static/**/*.css")),
]
#: Flower's pages have Flower's own stylesheet.
SOURCES = sorted(
    path
    for app in APPS
    for kind in ("html", "py")
    for path in ROOT.glob(f"{app}/**/*.{kind}")
    if path.parent.name != "flower"
)
#: What scripts look for: Django's own, in the bar of a list's actions.
HOOKS = {"action-counter", "all", "question", "clear"}
#: Of Django's own admin, for projects without unfold.
DJANGOS = {"button", "closelink", "deletelink", "inline-group", "paginator", "submit-row"}
WITH_CLASSES = [path for path in SOURCES if 'class="' in path.read_text(encoding="utf-8")]


def ruled() -> set[str]:
    text = "".join(path.read_text(encoding="utf-8") for path in STYLES)
    return {name.replace("\\", "") for name in re.findall(r"\.((?:[\w-]|\\.)+)", text)}


def test_each_page_of_the_service_has_all_styles_of_our_pages() -> None:
    """Also pages that are not of a ModelAdmin of ours, such as the dashboard."""
    given = [style(None) for style in settings.UNFOLD["STYLES"]]
    assert given == [static(path) for path in media()._css["all"]]


@pytest.mark.parametrize("path", WITH_CLASSES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_class_has_a_rule(path: Path) -> None:
    text = re.sub(r"{[{%].*?[%}]}|{\w*}", " ", path.read_text(encoding="utf-8"))
    used = {name for given in re.findall(r'class="([^"]*)"', text) for name in given.split()}
    assert used - ruled() - HOOKS - DJANGOS - {"harbor-", "harbor-label-"} == set()
