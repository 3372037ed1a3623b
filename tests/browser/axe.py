"""What a page lacks for people who see little, hear the page read, or hold a phone: found by axe-core."""

import json
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.browser.sizes import DESKTOP, PHONE

#: axe calls these impacts serious. Lesser ones are advice.
SERIOUS = ("serious", "critical")
#: In the dark only colours differ.
COLOURS = {"runOnly": ["color-contrast"]}
#: Unfold's word for it is a class, and Django's an attribute. Colours that change slowly are waited for.
IN_THE_DARK = """async isDark => {
    document.documentElement.classList.toggle('dark', isDark);
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    const changing = document.getAnimations().filter(one => one instanceof CSSTransition);
    await Promise.allSettled(changing.map(one => one.finished));
}"""


def violations(page: Page, within: str = "html", in_the_dark: str = IN_THE_DARK) -> list[str]:
    """Look at this part of the page light, dark and on a phone, and tell each serious violation. The page is light
    and wide again afterwards."""
    found = run(page, within, "light")
    page.evaluate(in_the_dark, True)
    found += run(page, within, "dark", COLOURS)
    page.evaluate(in_the_dark, False)
    page.set_viewport_size(PHONE)
    found += run(page, within, "phone") + _overflow(page)
    page.set_viewport_size(DESKTOP)
    return found


def must_be_usable(page: Page) -> None:
    """Fail with a line for each serious violation."""
    found = violations(page)
    assert not found, "\n".join(found)


def run(page: Page, within: str, view: str, options: dict[str, Any] | None = None) -> list[str]:
    """Look at this part of the page as it is, and tell each serious violation."""
    page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"], **(options or {})}
    rules = page.evaluate(f"axe.run({json.dumps(within)}, {json.dumps(options)}).then(found => found.violations)")
    return [
        f"{view}: {rule['id']}: {_what(node)}"
        for rule in rules
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]


def _what(node: dict[str, Any]) -> str:
    checks = node["any"] or node["all"] or node["none"]
    return f"{node['html'][:160]} {checks[0]['message'] if checks else ''}"


def _overflow(page: Page) -> list[str]:
    """A page that is wider than a phone must be moved sideways to be read."""
    width = page.evaluate("document.documentElement.scrollWidth")
    return [f"phone: the page is {width} px wide"] if width > PHONE["width"] else []
