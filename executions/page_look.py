"""The look of the screens: django-unfold's if the project has installed it, else that of Django's own admin.

Templates and formatters name the parts of a page (`card`, `table`, `label`); `template_of` names the template of
each in the look of the project. A part takes what unfold's component of that name takes.
"""

from functools import cache
from typing import Any

from django import forms
from django.apps import apps
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

UNFOLD = "unfold/components/{}.html"
PLAIN = "executions/admin/plain/{}.html"
#: The parts that unfold has in another place than its components.
ELSEWHERE = {
    "label": "unfold/helpers/label.html",
    "info": "unfold/helpers/messages/info.html",
    "warning": "unfold/helpers/messages/warning.html",
}
PARTS = ("button", "card", "info", "label", "progress", "table", "text", "title", "warning")


@cache
def has_unfold() -> bool:
    """Whether the templates of the admin are unfold's. If its app comes after the admin, Django's templates are
    found first, which know nothing of unfold's options."""
    names = [app.name for app in apps.get_app_configs()]
    return "unfold" in names and names.index("unfold") < names.index("django.contrib.admin")


def template_of(part: str) -> str:
    if part not in PARTS:
        raise ValueError(f"no part of a page is called {part!r}")
    return ELSEWHERE.get(part, UNFOLD.format(part)) if has_unfold() else PLAIN.format(part)


def render_part(part: str, values: dict[str, Any]) -> SafeString:
    return render_to_string(template_of(part), values)


def media() -> forms.Media:
    """The styles and scripts of our pages in this look."""
    scripts: Any = [forms.Script(f"executions/{_name()}.js", defer=True)]
    return parts_media() + forms.Media(css={"all": [f"executions/{_name()}.css"]}, js=scripts)


def parts_media() -> forms.Media:
    """The styles of the parts alone, which change nothing else of a page of the project."""
    return forms.Media(css={"all": [f"executions/{_name()}-parts.css"]})


def _name() -> str:
    return "admin" if has_unfold() else "plain"
