"""The spool: what was reported is there until the service has answered for it, whatever dies in between."""

import errno
import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harbor_refresh import client as module
from harbor_refresh.client import ClientError, Mark, NotSent, Report, Spool, SpoolFull
from harbor_refresh.local.ports import choose_port
from tests.integration.service.client.conftest import Make, Refusals
from tests.integration.service.client.recorder import Recorder, Told
from tests.integration.service.client.rounds import Runner
from tests.waiting import wait_for

AWAY = Told(503, b"")


def nowhere() -> str:
    return f"http://127.0.0.1:{choose_port()}"


def leave_behind(spool: Path, *task_ids: int) -> None:
    """Leave reports in the spool, as a process that has died does."""
    queue = Spool(spool, 10_000_000, fsync=False)
    for task_id in task_ids:
        queue.append([Report(task_id, "Success").as_line()])
    queue.close()


def segment(spool: Path) -> Path:
    (found,) = spool.glob("*.jsonl")
    return found


@pytest.mark.parametrize("fsync", [False, True])
def test_a_report_is_in_the_spool_when_report_returns(make: Make, spool: Path, fsync: bool) -> None:
    client = make(spool, url=nowhere(), fsync=fsync)
    client.report(7, "Running", revision=3, message="layer 1 of 2")
    client.report_many([Report(8, "Success"), Report(9, "Error", earlier_runs=1)])
    assert [json.loads(line) for line in segment(spool).read_text().splitlines()] == [
        {"task_id": 7, "status": "Running", "revision": 3, "message": "layer 1 of 2"},
        {"task_id": 8, "status": "Success"},
        {"task_id": 9, "status": "Error", "earlier_runs": 1},
    ]


def test_only_the_account_of_the_runner_can_read_the_spool(make: Make, spool: Path) -> None:
    make(spool, url=nowhere()).report(7, "Running")
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in [spool, *spool.iterdir()]}
    assert modes.pop("spool") == "0o700"
    assert set(modes.values()) == {"0o600"}


def test_the_next_process_sends_what_was_left_behind_without_being_asked(
    make: Make, server: Recorder, spool: Path
) -> None:
    leave_behind(spool, *range(1, 2_501))
    make(spool)
    wait_for(lambda: not list(spool.glob("*.jsonl")), "the spool to be sent")
    assert server.task_ids() == list(range(1, 2_501))
    assert [len(batch) for batch in server.batches] == [1_000, 1_000, 500]


def test_a_torn_last_line_is_skipped_and_told(
    make: Make, server: Recorder, refusals: Refusals, spool: Path
) -> None:
    leave_behind(spool, 1, 2)
    with segment(spool).open("ab") as file:
        file.write(b'{"task_id":3,"stat')
    make(spool).flush()
    wait_for(lambda: refusals, "the torn line to be told")
    assert server.task_ids() == [1, 2]
    assert refusals == [(None, "the spool ended with 18 bytes of a report whose process had died")]
    wait_for(lambda: not list(spool.glob("*.jsonl")), "the segment to be removed")


def test_a_report_after_a_torn_line_is_not_glued_to_it(
    make: Make, server: Recorder, refusals: Refusals, spool: Path
) -> None:
    leave_behind(spool, 1)
    with segment(spool).open("ab") as file:
        file.write(b'{"task_id":2,"stat')
    leave_behind(spool, 3)
    make(spool).flush()
    assert server.task_ids() == [1, 3]
    assert refusals == [(None, "19 bytes of the spool are no report")]


def test_many_bytes_without_a_line_feed_are_skipped_and_what_follows_is_sent(
    make: Make, server: Recorder, refusals: Refusals, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 100)
    leave_behind(spool, 1)
    with segment(spool).open("ab") as file:
        file.write(b"\x00" * 250)
    leave_behind(spool, 2)
    make(spool).flush()
    assert server.task_ids() == [1, 2]
    assert [report for report, _ in refusals] == [None] * 3


@pytest.mark.parametrize(
    "line",
    [b"\x00" * 50, b"[]", b"{}", b'{"task_id":"1","status":"Success"}', b'{"task_id":1,"other":2}', b"[" * 5_000],
    ids=["zeros", "a list", "empty", "a text", "unknown field", "nested"],
)
def test_a_line_that_is_no_report_is_told_and_delays_no_other(
    make: Make, server: Recorder, refusals: Refusals, spool: Path, line: bytes
) -> None:
    leave_behind(spool, 1)
    with segment(spool).open("ab") as file:
        file.write(line + b"\n\n")
    leave_behind(spool, 2)
    make(spool).flush()
    assert server.task_ids() == [1, 2]
    assert refusals == [(None, f"{len(line) + 1:,} bytes of the spool are no report")]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", [1, 2, 3]),
        (b"not a place", [1, 2, 3]),
        (b"\xff" * 42, [1, 2, 3]),
        (b"%020d %020d\n" % (1, 33), [2, 3]),
        (b"%020d %020d\n" % (1, 10_000), [1, 2, 3]),
        (b"%020d %020d\n" % (9, 10), [1, 2, 3]),
    ],
    ids=["empty", "no numbers", "no text", "right", "behind the end of its segment", "of a later segment"],
)
def test_a_place_that_does_not_fit_sends_again_and_skips_nothing(
    make: Make, server: Recorder, spool: Path, sent: bytes, expected: Sequence[int]
) -> None:
    """The reports that are made meanwhile come to a place that would count as sent."""
    leave_behind(spool, 1, 2)
    assert len(Report(1, "Success").as_line()) == 33
    (spool / "sent").write_bytes(sent)
    leave_behind(spool, 3)
    make(spool).flush()
    assert server.task_ids() == expected


def test_a_full_spool_takes_no_report_loses_none_and_has_room_when_it_is_sent(
    make: Make, server: Recorder, spool: Path
) -> None:
    server.always = AWAY
    client = make(spool, max_spool_bytes=331)
    client.report_many([Report(number, "Success") for number in range(1, 10)])
    with pytest.raises(SpoolFull, match=r"has 297 bytes and may have 331$"):
        client.report_many([Report(number, "Success") for number in (10, 11)])
    client.report(10, "Success")
    with pytest.raises(SpoolFull):
        client.report(11, "Success")
    server.always = None
    client.flush()
    client.report(11, "Success")
    client.flush()
    assert server.task_ids() == list(range(1, 12))


def test_a_full_memory_takes_no_report_and_loses_none(make: Make, server: Recorder) -> None:
    server.always = AWAY
    client = make(max_reports_in_memory=3)
    client.report_many([Report(1, "Success"), Report(2, "Success")])
    with pytest.raises(SpoolFull, match="2 reports wait in memory, which holds 3"):
        client.report_many([Report(3, "Success"), Report(4, "Success")])
    server.always = None
    client.flush()
    assert server.task_ids() == [1, 2]


def test_a_full_disk_is_a_full_spool_and_what_waits_is_sent(
    make: Make, server: Recorder, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.always = AWAY
    client = make(spool)
    client.report(1, "Success")
    before = segment(spool).read_bytes()
    write = os.write

    def write_half(handle: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", write_half)
    with pytest.raises(SpoolFull, match=r"the disk of the spool .* is full"):
        client.report(2, "Success")
    assert segment(spool).read_bytes() == before
    server.always = None
    client.flush()
    assert server.task_ids() == [1]
    wait_for(lambda: not list(spool.glob("*.jsonl")), "the segment to be removed")


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of a server that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_process_takes_over_from_one_that_is_killed_while_it_sends(
    make: Make, server: Recorder, spool: Path, hanging: str
) -> None:
    runner = Runner(hanging, "hr_a-token", spool, [1], 1_000_000)
    wait_for(lambda: runner.made and is_owned(spool), "the runner to make reports and to own the spool")
    client = make(spool)
    client.report(2, "Success")
    with pytest.raises(NotSent):
        client.flush(timeout=0.3)
    assert server.is_asked == 0, "the runner owns the spool"
    runner.kill()
    client.flush()
    sent = [one["revision"] for batch in server.batches for one in batch if one["task_id"] == 1]
    assert sent in (list(range(1, runner.made + 1)), list(range(1, runner.made + 2)))
    assert server.task_ids().count(2) == 1


def test_a_process_whose_token_is_wrong_does_not_keep_another_from_sending(
    make: Make, server: Recorder, spool: Path
) -> None:
    wrong = make(spool, url=nowhere(), longest_pause=60.0, first_pause=60.0)
    wrong.report(1, "Success")
    wait_for(lambda: wrong.failures, "the first process to fail")
    make(spool).flush()
    assert server.task_ids() == [1]


def is_owned(spool: Path) -> bool:
    queue = Spool(spool, 1_000, fsync=False)
    try:
        return not queue.acquire()
    finally:
        queue.release()
        queue.close()


def test_a_child_that_is_forked_reports_by_itself(make: Make, server: Recorder, spool: Path) -> None:
    """It gets neither the thread of its parent nor its connection, and not what its parent has in memory."""
    server.always = AWAY
    with_memory, with_spool = make(), make(spool)
    with_memory.report(1, "Success")
    with_spool.report(2, "Success")
    wait_for(lambda: with_memory.failures and with_spool.failures, "both to have tried")
    if (child := os.fork()) == 0:
        try:
            signal.alarm(30)
            with_memory.report(3, "Success")
            with_spool.report(4, "Success")
            with_memory.close()
            with_spool.close()  # or its parent sends again what it was sending
            os._exit(0)
        finally:
            os._exit(1)
    server.always = None
    assert os.waitpid(child, 0)[1] == 0
    with_memory.flush()
    with_spool.flush()
    assert sorted(server.task_ids()) == [1, 2, 3, 4]


def test_closing_without_a_spool_tells_what_it_could_not_send(
    make: Make, server: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    server.always = AWAY
    client = make()
    client.report(1, "Success", revision=4, message="done")
    wait_for(lambda: client.failures, "the client to have tried")
    with pytest.raises(NotSent, match="1 reports could not be sent: it answered 503") as failure:
        client.close(timeout=0.1)
    assert failure.value.lost == [Report(1, "Success", 4, "done")]
    assert "Lost 1 reports that could not be sent in time" in caplog.text
    with pytest.raises(ClientError, match="the client is closed"):
        client.report(1, "Success")


def test_closing_with_a_spool_leaves_the_rest_to_the_next(make: Make, server: Recorder, spool: Path) -> None:
    server.always = AWAY
    with make(spool) as client:
        client.report(1, "Success")
    assert not is_owned(spool)
    server.always = None
    make(spool).flush()
    assert server.task_ids() == [1]


def test_an_error_in_the_block_is_not_hidden_by_reports_that_are_left(make: Make, server: Recorder) -> None:
    server.always = AWAY

    def work() -> None:
        with make(close_timeout=0.05) as client:
            client.report(1, "Success")
            raise KeyError("an error of the runner")

    with pytest.raises(KeyError):
        work()


def test_a_spool_whose_directory_is_removed_does_not_end_the_thread(
    make: Make, server: Recorder, spool: Path
) -> None:
    client = make(spool)
    client.report(1, "Success")
    client.flush()
    shutil.rmtree(spool)
    wait_for(lambda: client.failures >= 2, "the client to notice it")
    spool.mkdir()
    client.report(2, "Success")
    client.flush()
    assert server.task_ids() == [1, 2]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("send"), st.integers(1, 6)),
        st.tuples(st.just("tear"), st.integers(1, 30)),
        st.tuples(st.just("die"), st.just(0)),
        st.tuples(st.just("forget"), st.just(0)),
    ),
    max_size=30,
)


@settings(
    max_examples=150, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_whatever_happens_to_a_spool_each_report_is_taken_in_order_and_none_is_skipped(
    steps: Sequence[tuple[str, int]],
) -> None:
    """Reports may be taken again, after a death or a lost place, but never before an earlier one was taken."""
    with tempfile.TemporaryDirectory() as directory:
        queue = Spool(directory, 2_000, fsync=False)
        made, taken = 0, 0
        marks: list[tuple[int, Mark]] = []

        def take(count: int) -> bool:
            nonlocal taken
            batch = queue.take(count)
            for line in batch.lines:
                try:
                    number = Report.from_line(line).task_id
                except ClientError:
                    continue
                assert number <= taken + 1, f"{number} came before {taken + 1}"
                taken = max(taken, number)
            queue.remove(batch)
            return bool(batch.lines)

        for step, count in steps:
            match step:
                case "append":
                    try:
                        queue.append([Report(made + n, "Success").as_line() for n in range(1, count + 1)])
                    except SpoolFull:
                        continue
                    made += count
                    marks.append((made, queue.end()))
                case "send":
                    take(count)
                case "tear":
                    for last in sorted(Path(directory).glob("*.jsonl"))[-1:]:
                        with last.open("ab") as file:
                            file.write(b'{"task_id":999999,"status":"Success"}'[:count])
                case "die":
                    queue.close()
                    queue = Spool(directory, 2_000, fsync=False)
                case "forget":
                    (Path(directory) / "sent").write_bytes(b"")
            for number, mark in marks:
                assert not queue.has_passed(mark) or taken >= number
        while take(3):
            pass
        assert taken == made
        assert not list(Path(directory).glob("*.jsonl"))
        queue.close()
