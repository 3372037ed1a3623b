"""The alerts: proven by promtool, and about metrics that there are."""

import re
from typing import Any

import pytest
import yaml

from harbor_refresh.web.metrics import COUNTERS, GAUGES, HISTOGRAMS
from tests.pages import ROOT
from tests.programs import needs
from tests.terminal import ran

FOLDER = ROOT / "deploy/prometheus"
#: Those that the operators have asked for by name.
ASKED_FOR = {"ExecutionQueueGrowing": "> 10000", "StaleProcessingHigh": "> 1000"}


def rules() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    return found


def series() -> set[str]:
    """The names that a scrape has."""
    histograms = {f"{one.name}_{part}" for one in HISTOGRAMS for part in ("bucket", "sum", "count")}
    return {one.name for one in (*COUNTERS, *GAUGES)} | histograms


def promtool(*words: str) -> None:
    done = ran([needs("promtool"), *words], folder=FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_the_rules_sound() -> None:
    promtool("check", "rules", "--lint-fatal", "alerts.yml")
    promtool("check", "config", "--syntax-only", "prometheus.yml")


def test_each_rule_fires_when_it_must_and_only_then() -> None:
    promtool("test", "rules", "alerts_test.yml")


def test_each_rule_is_seen_to_fire_and_to_stay_quiet() -> None:
    """A case that lists what fires says of every other rule that it does not; each rule has cases of its own."""
    fires, quiet = set(), set()
    for case in cases():
        named = {series["series"].split("{")[0] for series in case["input_series"]}
        about = {name for name, rule in rules().items() if named & set(re.findall(r"\w+", rule["expr"]))}
        for moment in case["promql_expr_test"]:
            firing = {re.findall(r'"(\w+)"', one["labels"])[0] for one in moment["exp_samples"]}
            fires |= firing
            quiet |= about - firing
    assert fires == set(rules())
    assert quiet == set(rules())


@pytest.mark.parametrize("name", sorted(rules()))
def test_a_rule_speaks_of_metrics_that_there_are(name: str) -> None:
    rule = rules()[name]
    assert set(re.findall(r"harbor_refresh_\w+", rule["expr"])) <= series()
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description"}


def test_the_alerts_that_were_asked_for_have_their_limits() -> None:
    assert {name: ASKED_FOR[name] in rules()[name]["expr"] for name in ASKED_FOR} == dict.fromkeys(ASKED_FOR, True)
