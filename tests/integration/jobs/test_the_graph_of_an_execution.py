"""The picture of the jobs of an execution that need each other, on its page."""

import re

import pytest
from django.test import Client

from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.admin import job_formatters
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from tests.integration.jobs.sample_jobs import failed, in_a_row, recorded
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "at_once")

Part = list[NewJob]


def chord(header: int) -> Part:
    fetches = [NewJob("fetch") for _ in range(header)]
    return [*fetches, NewJob("merge", needs=[NewNeed(place) for place in range(header)])]


def picture(admin: Client, execution: Execution) -> str:
    answer = admin.get(f"/admin/harbor_executions/execution/{execution.pk}/running/")
    html: str = answer.json()["parts"]["running"]
    return html


def boxes(html: str) -> list[tuple[str, str]]:
    return re.findall(r"<text [^>]*>(.*?)</text>\s*<text [^>]*>(.*?)</text>", html)


def test_an_execution_whose_jobs_need_no_others_has_no_picture(admin: Client) -> None:
    assert "<svg" not in picture(admin, recorded("a", "b"))


def test_each_job_is_a_box_with_its_status_that_leads_to_its_task(admin: Client) -> None:
    execution = start(
        "BUILD", [in_a_row(NewJob("shop.fetch", job_id="a"), NewJob("<build>"), NewJob("push")), [NewJob("x")]]
    )
    failed(execution, "a")
    html = picture(admin, execution)
    assert boxes(html) == [("fetch", "Error"), ("&lt;build&gt;", "Stopped"), ("push", "Stopped")]
    first = Task.objects.earliest("pk").pk
    assert html.count(f'<a href="/admin/harbor_executions/task/{first}/change/">') == 1
    assert html.count("<path") == 2
    assert "3 jobs" in html


@pytest.mark.parametrize(
    ("part", "shown", "lines"),
    [
        (chord(10), ["fetch"] * 10 + ["merge"], 10),
        (chord(10_000), ["fetch (10,000)", "merge"], 1),
    ],
    ids=["at 10", "at 10,000"],
)
def test_it_is_readable_at_ten_and_folded_at_ten_thousand(
    part: Part, shown: list[str], lines: int, admin: Client
) -> None:
    html = picture(admin, start("BUILD", [part]))
    assert [name for name, _ in boxes(html)] == shown
    assert html.count("<path") == lines


def test_many_chains_before_one_job_are_one_chain_of_boxes(admin: Client) -> None:
    part: Part = []
    for number in range(20):
        part += [NewJob("pull"), NewJob("push", needs=[NewNeed(2 * number)])]
    part.append(NewJob("tell", needs=[NewNeed(2 * number + 1) for number in range(20)]))
    execution = start("BUILD", [part])
    assert boxes(picture(admin, execution)) == [
        ("pull (20)", "20 Pending"),
        ("push (20)", "20 Pending"),
        ("tell", "Pending"),
    ]


def test_a_graph_that_is_too_large_says_so(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = start("BUILD", [chord(40)])
    for name in ("MOST_LINES", "MOST_BOXES"):
        with monkeypatch.context() as patch:
            patch.setattr(job_formatters, name, 1)
            assert "There are too many jobs with needs to draw them." in picture(admin, execution)
