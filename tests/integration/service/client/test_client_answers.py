"""What the client makes of each answer: which reports it keeps, which it gives up, and what it never shows."""

import json
import logging
import os
import re
import signal
import traceback

import pytest

from harbor_refresh import client as module
from harbor_refresh.client import ApiError, Client, ClientError, NotSent, QueueFull, Report, Unavailable, Unusable
from tests.integration.service.client.conftest import Make, Refusals
from tests.integration.service.client.recorder import PROBLEM, Recorder, Told, recorder
from tests.waiting import wait_for

TOKEN = "hr_a-secret-that-no-text-may-hold"


def problem(status: int, detail: str = "") -> Told:
    return Told(status, f'{{"title":"A title","status":{status},"detail":"{detail}"}}'.encode(), PROBLEM)


@pytest.mark.parametrize(
    "answer",
    [
        problem(401),
        problem(404),
        problem(408),
        problem(429),
        problem(503),
        Told(400),
        Told(422),
        Told(302, headers={"Location": "http://127.0.0.1:1/"}),
        Told(200),
        Told(200, b'{"results":[]}', "application/json"),
        Told(200, b'{"results":[7]}', "application/json"),
        Told(200, b"[" * 100_000, "application/json"),
        Told(204, b""),
    ],
    ids=lambda told: f"{told.status} {told.kind.rpartition('/')[2]} {told.body[:16].decode()}",
)
def test_an_answer_that_says_nothing_about_the_reports_keeps_them(
    make: Make, server: Recorder, refusals: Refusals, caplog: pytest.LogCaptureFixture, answer: Told
) -> None:
    """The token, the address, or a program between is wrong, or the service is down. Reports wait, in order."""
    server.answers.extend([answer] * 2)
    client = make()
    client.report_many([Report(1, "Running"), Report(2, "Running")])
    client.flush()
    assert (server.task_ids(), refusals, server.is_asked) == ([1, 2], [], 3)
    assert client.counts == {"applied": 2, "unchanged": 0, "refused": 0}
    assert re.search(rf"The service takes no reports, they wait: (http\S+ )?{answer.status} ", caplog.text)


def test_a_refused_report_is_told_and_those_after_it_are_sent(
    make: Make, server: Recorder, refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    server.refused = {2, 4}
    client = make()
    reports = [Report(number, "Success") for number in range(1, 6)]
    client.report_many(reports)
    client.flush()
    assert refusals == [(reports[1], "there is no such task"), (reports[3], "there is no such task")]
    assert client.counts == {"applied": 3, "unchanged": 0, "refused": 2}
    assert "Refused report of task 4: there is no such task" in caplog.text


@pytest.mark.parametrize("poison", [1, 667])
def test_one_report_for_which_the_service_refuses_all_is_found_and_the_others_are_sent_in_order(
    make: Make, server: Recorder, refusals: Refusals, poison: int
) -> None:
    server.poison = poison
    client = make()
    client.report_many([Report(number, "Success") for number in range(1, 1_501)])
    client.flush()
    assert server.task_ids() == [number for number in range(1, 1_501) if number != poison]
    assert refusals == [(Report(poison, "Success"), "422 The request is not as described: it is poison")]
    assert server.is_asked < 40


def test_an_on_refused_that_fails_ends_nothing(
    make: Make, server: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    server.refused = {1}

    def fail(report: Report, reason: str) -> None:
        raise KeyError("a fault of the runner")

    client = make(on_refused=fail)
    client.report_many([Report(1, "Success"), Report(2, "Success")])
    client.flush()
    assert client.counts == {"applied": 1, "unchanged": 0, "refused": 1}
    assert "The function on_refused failed" in caplog.text


def test_a_batch_holds_what_came_within_the_linger_and_flush_ends_it(
    make: Make, server: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make()
    monkeypatch.setattr(module, "LINGER", 600.0)
    for number in range(1, 1_001):
        client.report(number, "Success")
    wait_for(lambda: server.batches, "the full batch")
    client.report(1_001, "Success")
    client.flush()
    assert [len(batch) for batch in server.batches] == [1_000, 1]


def test_the_service_is_not_asked_before_the_time_that_it_wishes(make: Make, server: Recorder) -> None:
    server.answers.append(Told(429, headers={"Retry-After": "1"}))
    client = make()
    client.report(1, "Success")
    wait_for(lambda: client._failures, "the service to wish it")
    client.flush()
    assert server.times[1] - server.times[0] >= 0.99


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", 0), ("7", 7), ("100000", 300), ("-5", 0), ("soon", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("²", 0)],
)
def test_retry_after_is_read_and_bounded(header: str, seconds: float) -> None:
    assert module._retry_after(header) == seconds


def test_a_redirect_is_not_followed(make: Make, server: Recorder) -> None:
    """It would carry the token to another program."""
    with recorder() as other:
        server.always = Told(307, headers={"Location": f"{other.url}/api/v1/reports"})
        client = make()
        client.report(1, "Success")
        with pytest.raises(NotSent, match="307 which is no answer"):
            client.flush(0.5)
        with pytest.raises(ApiError, match=r"^307 "):
            client.create("X")
        assert other.is_asked == 0


def test_no_text_holds_the_token(make: Make, server: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.refused = {1}
    client = make(token=TOKEN, patience=0.0)
    client.report(1, "Success")
    client.flush()
    texts = [repr(client), repr(vars(client))]
    server.always = Told(503)
    down = make(url="http://127.0.0.1:1", token=TOKEN, patience=0.0)
    for call in (lambda: client.create("X"), lambda: down.create("X")):
        with pytest.raises(Unavailable) as failure:
            call()
        texts += traceback.format_exception(failure.value)
        assert failure.value.__context__ is None, "an error of httpx2 refers to the headers of its request"
    assert caplog.text
    assert not [text for text in [*texts, caplog.text] if TOKEN in text]


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("", TOKEN),
        ("refresh.example", TOKEN),
        ("ftp://refresh.example", TOKEN),
        ("http://", TOKEN),
        ("http://[::1", TOKEN),
        ("http://user:word@refresh.example", TOKEN),
        ("http://refresh.example?a=b", TOKEN),
        ("http://refresh.example", ""),
        ("http://refresh.example", f"{TOKEN}\r\nX: y"),
        ("http://refresh.example", f"{TOKEN} {TOKEN}"),
        ("http://refresh.example", f"{TOKEN}\u00e9"),
    ],
)
def test_an_address_or_a_token_that_cannot_be_used_is_refused_and_not_repeated(url: str, token: str) -> None:
    with pytest.raises(Unusable) as failure:
        Client(url, token)
    assert TOKEN not in str(failure.value)
    assert "word" not in str(failure.value)


def test_a_report_is_a_line_of_json() -> None:
    report = Report(7, "Running", revision=3, message="layer 1 of 2", earlier_runs=1)
    assert json.loads(report.as_line()) == {
        "task_id": 7,
        "status": "Running",
        "revision": 3,
        "message": "layer 1 of 2",
        "earlier_runs": 1,
    }
    assert Report.from_line(report.as_line()) == report
    assert Report(8, "Success").as_line() == b'{"task_id":8,"status":"Success"}\n'
    assert json.loads(Report(9, "Running", message="").as_line())["message"] == "", "it ends the message before"


@pytest.mark.parametrize(
    "line",
    [b"\x00" * 50, b"[]", b"{}", b'{"task_id":1,"other":2}', b"[" * 5_000],
    ids=["zeros", "a list", "empty", "unknown field", "nested"],
)
def test_a_line_that_is_no_report_is_refused(line: bytes) -> None:
    with pytest.raises(Unusable):
        Report.from_line(line)


def test_a_message_is_cut_and_cleaned_because_the_status_matters_more(make: Make, server: Recorder) -> None:
    client = make()
    client.report(1, "Error", message="x" * 20_000)
    client.report(2, "Error", message="a\x00b\ud800c\né")
    client.flush()
    first, second = (one["message"] for batch in server.batches for one in batch)
    assert (len(first), first[-2:], second) == (10_000, "x…", "a?b?c\né")


def test_a_full_queue_takes_no_report_and_loses_none(make: Make, server: Recorder) -> None:
    server.always = Told(503)
    client = make(max_reports_in_memory=3)
    client.report_many([Report(1, "Success"), Report(2, "Success")])
    with pytest.raises(QueueFull, match="2 reports wait in memory, which holds 3"):
        client.report_many([Report(3, "Success"), Report(4, "Success")])
    server.always = None
    client.flush()
    client.report(3, "Success")
    client.flush()
    assert server.task_ids() == [1, 2, 3]


def test_closing_tells_what_it_could_not_send(
    make: Make, server: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    server.always = Told(503)
    client = make()
    client.report(1, "Success", revision=4, message="done")
    wait_for(lambda: client._failures, "the client to have tried")
    with pytest.raises(NotSent, match=r"1 reports could not be sent: http://.*: 503") as failure:
        client.close(timeout=0.1)
    assert failure.value.lost == [Report(1, "Success", 4, "done")]
    assert "Lost 1 reports that could not be sent in time" in caplog.text
    with pytest.raises(ClientError, match="the client is closed"):
        client.report(1, "Success")


def test_an_error_in_the_block_is_not_hidden_by_reports_that_are_left(make: Make, server: Recorder) -> None:
    server.always = Told(503)

    def work() -> None:
        with make(close_timeout=0.05) as client:
            client.report(1, "Success")
            raise KeyError("an error of the runner")

    with pytest.raises(KeyError):
        work()


def test_a_forked_child_makes_a_client_of_its_own(make: Make, server: Recorder) -> None:
    """It has neither the thread of its parent nor a connection to itself."""
    server.always = Told(503)
    client = make()
    client.report(1, "Success")
    if (child := os.fork()) == 0:
        is_good = False
        try:
            signal.alarm(60)
            for call in (lambda: client.report(2, "Success"), lambda: client.get(1), client.flush):
                with pytest.raises(ClientError, match="belongs to the process that made it"):
                    call()
            client.close()
            make().report(3, "Success")
            is_good = True
        finally:
            os._exit(0 if is_good else 1)
    assert os.waitpid(child, 0)[1] == 0, "the child has failed"
    server.always = None
    client.flush()
    assert 1 in server.task_ids()
    assert 2 not in server.task_ids()
