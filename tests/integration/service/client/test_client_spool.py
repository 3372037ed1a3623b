"""The spool: a report is in the file until the service has answered for it, whatever dies in between."""

import errno
import json
import os
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harbor_refresh.client import ClientError, NotSent, Report, Spool, SpoolBusy, SpoolFull, Unusable
from harbor_refresh.local.ports import choose_port
from tests.integration.service.client.conftest import Make
from tests.integration.service.client.recorder import Recorder, Told
from tests.integration.service.client.rounds import Runner
from tests.waiting import wait_for

AWAY = Told(503, b"")


def nowhere() -> str:
    return f"http://127.0.0.1:{choose_port()}"


def leave_behind(spool: Path, *task_ids: int, torn: bytes = b"") -> None:
    """Leave reports in the spool, as a process that has died does."""
    with spool.open("ab") as file:
        file.write(b"".join(Report(one, "Success").as_line() for one in task_ids) + torn)


def is_empty(spool: Path) -> bool:
    return spool.stat().st_size == 0


@pytest.mark.parametrize("fsync", [False, True])
def test_a_report_is_in_the_spool_when_report_returns(make: Make, spool: Path, fsync: bool) -> None:
    client = make(spool, url=nowhere(), fsync=fsync)
    client.report(7, "Running", revision=3, message="layer 1 of 2")
    client.report_many([Report(8, "Success"), Report(9, "Error", earlier_runs=1)])
    assert [json.loads(line) for line in spool.read_text().splitlines()] == [
        {"task_id": 7, "status": "Running", "revision": 3, "message": "layer 1 of 2"},
        {"task_id": 8, "status": "Success"},
        {"task_id": 9, "status": "Error", "earlier_runs": 1},
    ]


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("", "Is a directory"),
        ("a file/spool", "(Not a directory|File exists)"),
        ("a link", "Too many .*"),
    ],
)
def test_what_is_no_file_is_refused_as_a_spool(make: Make, tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "a link").symlink_to("a file")
    with pytest.raises(Unusable, match=f"the spool {tmp_path / place} cannot be opened as a file: {why}$"):
        make(tmp_path / place)


def test_only_the_account_of_the_runner_can_read_the_spool(make: Make, tmp_path: Path) -> None:
    spool = tmp_path / "new" / "spool.jsonl"
    make(spool, url=nowhere()).report(7, "Running")
    assert [oct(path.stat().st_mode & 0o777) for path in (spool.parent, spool)] == ["0o700", "0o600"]


def test_the_next_process_sends_what_was_left_behind_without_being_asked(
    make: Make, server: Recorder, spool: Path
) -> None:
    leave_behind(spool, *range(1, 2_501))
    make(spool)
    wait_for(lambda: is_empty(spool), "the spool to be sent")
    assert server.task_ids() == list(range(1, 2_501))
    assert [len(batch) for batch in server.batches] == [1_000, 1_000, 500]


def test_a_report_stays_in_the_file_until_all_are_answered_for(make: Make, server: Recorder, spool: Path) -> None:
    leave_behind(spool, *range(1, 1_002))
    before = spool.read_bytes()
    server.answers.extend([Told(200, json.dumps({"results": [{"result": "applied"}] * 1_000}).encode()), AWAY])
    with make(spool) as client:
        wait_for(lambda: client.failures, "the second batch to fail")
        assert (client.counts["applied"], spool.read_bytes()) == (1_000, before)
        client.flush()
    assert is_empty(spool)


def test_the_torn_line_of_a_process_that_died_is_cut_off_and_logged(
    make: Make, server: Recorder, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leave_behind(spool, 1, 2, torn=b'{"task_id":3,"stat')
    server.always = AWAY
    client = make(spool)
    client.report(4, "Success")
    assert [json.loads(line)["task_id"] for line in spool.read_text().splitlines()] == [1, 2, 4]
    assert "Skipped 18 bytes of the spool that are no report" in caplog.text
    server.always = None
    client.flush()
    assert server.task_ids() == [1, 2, 4]


@pytest.mark.parametrize(
    "line",
    [b"\x00" * 50, b"[]", b"{}", b'{"task_id":"1","status":"Success"}', b'{"task_id":1,"other":2}', b"[" * 5_000],
    ids=["zeros", "a list", "empty", "a text", "unknown field", "nested"],
)
def test_a_line_that_is_no_report_is_logged_and_delays_no_other(
    make: Make, server: Recorder, spool: Path, caplog: pytest.LogCaptureFixture, line: bytes
) -> None:
    leave_behind(spool, 1, torn=line + b"\n\n")
    leave_behind(spool, 2)
    make(spool).flush()
    assert server.task_ids() == [1, 2]
    assert f"Skipped {len(line)} bytes of the spool that are no report" in caplog.text


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
    before = spool.read_bytes()
    write = os.write

    def write_half(handle: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", write_half)
    with pytest.raises(SpoolFull, match=r"the disk of the spool .* is full"):
        client.report(2, "Success")
    assert spool.read_bytes() == before
    server.always = None
    client.flush()
    assert server.task_ids() == [1]
    assert is_empty(spool)


def test_one_client_at_a_time_uses_a_spool_and_the_next_waits_for_it(
    make: Make, server: Recorder, spool: Path
) -> None:
    server.always = AWAY
    first = make(spool)
    first.report(1, "Success")
    with pytest.raises(SpoolBusy, match="another client uses the spool"):
        make(spool, timeout=0.1)
    first.close()
    server.always = None
    make(spool, timeout=0.1).flush()
    assert {*server.task_ids()} == {1}, "twice, if the request that the close cut off arrives late"


def test_a_close_that_is_interrupted_frees_the_spool_and_keeps_its_reports(
    make: Make, server: Recorder, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("FIRST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(f"harbor_refresh.client.{pause}", 60.0)
    server.always = AWAY
    client = make(spool)
    client.report(1, "Success")
    wait_for(lambda: client.failures, "its pause, in which no request is on its way")

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(client, "_flush", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.close()
    server.always = None
    make(spool, timeout=0.1).flush()
    assert server.task_ids() == [1]


def test_the_spool_of_a_process_that_is_killed_is_free_at_once(make: Make, server: Recorder, spool: Path) -> None:
    runner = Runner(nowhere(), "hr_a-token", spool, [1], 1_000_000)
    wait_for(lambda: runner.made > 10, "the runner to make reports")
    runner.kill()
    make(spool).flush()
    sent = [one["revision"] for batch in server.batches for one in batch]
    assert sent in (list(range(1, runner.made + 1)), list(range(1, runner.made + 2)))


def test_a_forked_child_makes_a_client_of_its_own(make: Make, server: Recorder, spool: Path) -> None:
    """It has neither the thread of its parent nor a connection to itself, and does not keep the spool locked."""
    server.always = AWAY
    client = make(spool)
    client.report(1, "Success")
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            signal.alarm(60)
            for call in (lambda: client.report(2, "Success"), lambda: client.get(1), client.flush):
                with pytest.raises(ClientError, match="belongs to the process that made it"):
                    call()
            client.close()
            own = make()
            own.report(3, "Success")
            os.write(write, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(write)
    try:
        assert os.read(read, 1) == b"x", "the child has failed"
        client.close()
        server.always = None
        make(spool, timeout=0.1).flush()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert 1 in server.task_ids()
    assert 2 not in server.task_ids()


def test_closing_without_a_spool_tells_what_it_could_not_send(
    make: Make, server: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    server.always = AWAY
    client = make()
    client.report(1, "Success", revision=4, message="done")
    wait_for(lambda: client.failures, "the client to have tried")
    with pytest.raises(NotSent, match=r"1 reports could not be sent: http://.*: 503") as failure:
        client.close(timeout=0.1)
    assert failure.value.lost == [Report(1, "Success", 4, "done")]
    assert "Lost 1 reports that could not be sent in time" in caplog.text
    with pytest.raises(ClientError, match="the client is closed"):
        client.report(1, "Success")


def test_closing_with_a_spool_leaves_the_rest_to_the_next(make: Make, server: Recorder, spool: Path) -> None:
    server.always = AWAY
    with make(spool) as client:
        client.report(1, "Success")
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


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("tear"), st.integers(1, 30)),
        st.tuples(st.just("die"), st.just(0)),
        st.tuples(st.just("empty"), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=150)
@given(steps=STEPS)
def test_whatever_happens_to_a_spool_the_next_process_has_every_report_in_order(
    steps: Sequence[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "spool"
        queue, made, kept, is_torn = Spool(path, 2_000, fsync=False, timeout=0), 0, [], False
        for step, count in [*steps, ("die", 0)]:
            match step:
                case "append" if not is_torn:
                    new = [Report(made + n, "Success") for n in range(1, count + 1)]
                    try:
                        queue.append(b"".join(one.as_line() for one in new))
                    except SpoolFull:
                        continue
                    kept += new
                    made += count
                case "tear" if not is_torn:  # the process dies while it writes
                    is_torn = True
                    with path.open("ab") as file:
                        file.write(b'{"task_id":999999,"status":"Success"}'[:count])
                case "empty" if not is_torn:
                    queue.empty()
                    kept = []
                case "die":
                    queue.close()
                    queue, is_torn = Spool(path, 2_000, fsync=False, timeout=0), False
                    assert [Report.from_line(line) for line in queue.load()] == kept
        queue.close()
