"""Scrapes: the text of /metrics as values."""

from prometheus_client.parser import text_string_to_metric_families

#: The values by the name of the sample and its labels, as in ("harbor_refresh_nodes", "state=alive").
Scrape = dict[tuple[str, str], float]


def scraped(text: str) -> Scrape:
    return {
        (sample.name, ",".join(f"{label}={value}" for label, value in sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
