"""Each page with blocks that can be run is read by a test, which runs them.

What such a test proves is in its own file. The changelog is left out: it tells of the past."""

import re
from pathlib import Path

import pytest

from tests import pages

RUN = {"sh", "sql", "redis", "python", "yaml", "django"}
#: They are read and not run.
SHOWN = {"go", "http", "js", "json", "mermaid", "text"}
PAGES = sorted([*pages.ROOT.glob("*.md"), *pages.ROOT.glob("docs/**/*.md"), *pages.ROOT.glob("deploy/**/*.md")])
READ = {
    name
    for path in (pages.ROOT / "tests").rglob("*.py")
    if "unit" not in path.parts
    for name in re.findall(r'"((?:docs/)?[\w/]+\.md)"', path.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_a_page_says_the_language_of_each_block_and_is_read_by_a_test(page: Path) -> None:
    languages = {one.language for one in pages.blocks(page.read_text(encoding="utf-8"))}
    assert languages <= RUN | SHOWN
    assert not languages & RUN or str(page.relative_to(pages.ROOT)) in READ
