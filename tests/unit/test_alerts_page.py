"""docs/alerts.md has a section for each alert, with all that an operator needs at night."""

import re
from pathlib import Path

import pytest
import yaml

from tests import pages

ROOT = Path(__file__).resolve().parents[2]
PAGE = pages.read("docs/alerts.md")
(GROUP,) = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"]
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}
SECTIONS = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PARTS = ("**It means**", "**Look**", "**Do.**", "**It is over**")


def test_each_alert_has_its_section_in_the_order_of_the_rules() -> None:
    assert list(SECTIONS) == list(RULES)


@pytest.mark.parametrize("alert", RULES)
def test_a_section_says_how_bad_it_is_what_it_means_where_to_look_what_to_do_and_when_it_is_over(
    alert: str,
) -> None:
    section = SECTIONS[alert]
    assert section.lstrip().startswith(f"{RULES[alert]['labels']['severity'].capitalize()}. ")
    places = [section.find(part) for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)
    assert pages.codes(section[places[1] : places[2]], "sh")


@pytest.mark.parametrize("alert", RULES)
def test_the_number_of_a_rule_stands_in_its_section(alert: str) -> None:
    """Thresholds as a person writes them: 10,000, or minutes and seconds."""
    found = re.search(r"> (\d+)(?![\d.])", RULES[alert]["expr"])
    number = int(found[1]) if found else 0
    words = {10: "", 120: "two minutes", 900: "15 minutes", 300: "five minutes", 60: "a minute", 1: "one request"}
    expected = words.get(number, f"{number:,}" if number else "")
    assert expected in " ".join(SECTIONS[alert].split())


def test_the_table_of_monitoring_leads_here() -> None:
    table = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    assert "(alerts.md)" in table
