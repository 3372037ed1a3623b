"""docs/monitoring.md has a row for each metric, alert and span, and no other."""

import re
from pathlib import Path

import yaml

from harbor_refresh.monitoring.catalogue import COUNTERS, GAUGES, HISTOGRAMS, Counted, Gauge, Timed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")


def row(one: Counted | Timed | Gauge) -> str:
    """Write the row of a metric."""
    labels = ""
    if isinstance(one, Counted):
        labels = "; ".join(f"`{label}`: {', '.join(values)}" for label, values in one.labels)
    elif isinstance(one, Gauge):
        labels = ", ".join(f"`{label}`" for label in one.label_names)
    kind = {Counted: "counter", Timed: "histogram", Gauge: "gauge"}[type(one)]
    return f"| `{one.name}` | {kind} | {labels} | {one.meaning} |".replace("|  |", "| |")


def test_each_metric_has_its_row() -> None:
    """Copy the rows that this expects into docs/monitoring.md."""
    found = re.findall(r"^\| `harbor_refresh_.*\|$", PAGE, re.MULTILINE)
    assert found == [row(one) for one in (*COUNTERS, *HISTOGRAMS, *GAUGES)]


def test_each_alert_has_its_row() -> None:
    (group,) = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"]
    assert re.findall(r"^\| `([A-Z]\w+)` \|", PAGE, re.MULTILINE) == [rule["alert"] for rule in group["rules"]]


def test_each_span_has_its_row_and_each_attribute_of_a_row_is_made() -> None:
    section = PAGE.split("\n## Traces\n")[1].split("\n## ")[0]
    code = (ROOT / "harbor_refresh/tracing/spans.py").read_text(encoding="utf-8")
    spans = set(re.findall(r'begun\(\s*"([a-z ]+)"', code))
    assert set(re.findall(r"^\| `([a-z ]+)` \|", section, re.MULTILINE)) == spans
    rows = re.findall(r"^\| `harbor_refresh\.([a-z_.]+)` \| ([a-z, ]+) \|", section, re.MULTILINE)
    assert {span for _, names in rows for span in names.split(", ")} <= spans
    assert [name for name, _ in rows if f'"{name.removeprefix("reports.")}"' not in code] == []
