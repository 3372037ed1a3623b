"""A client of the HTTP API, in one file: copy it to the runners. It needs Python 3.11, httpx2 and nothing else.

    with Client("https://refresh.example", token, spool="/var/spool/runner") as client:
        execution = client.create("REPLICATION", tasks=[{"job_id": "layer 1"}])
        client.report(execution["task_ids"][0], "Success")

`report()` appends to a queue: a spool on the disk, or memory. A thread sends the queue in batches, in order, and
removes a report only when the service has answered for it. So a report may be sent twice: its answer may be lost,
or the process may die before it has noted the answer. The service compares revision and status, so the second
report changes nothing. Errors, log lines and representations never contain the token.

From a shell: `python -m harbor_refresh.client --help`.
"""

import argparse
import atexit
import json
import logging
import math
import os
import random
import sys
import threading
import time
import uuid
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from errno import EDQUOT, ENOSPC
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self
from urllib.parse import urlsplit

import httpx2

log = logging.getLogger("harbor_refresh.client")

Json = dict[str, Any]

#: The service takes 10,000 reports and 10 MB in a request; smaller ones lose less when they fail.
MAX_BATCH = 1_000
MAX_BATCH_BYTES = 4 * 1024**2
MAX_ANSWER_BYTES = 64 * 1024**2
#: In characters; the service refuses longer ones.
MAX_MESSAGE = 10_000
MAX_STATUS = 100
MAX_KEY = 200
MAX_REVISION = 2**61 - 1
#: A wish of the service (Retry-After) is granted up to so many seconds.
LONGEST_WISH = 300.0
UNFINISHED = frozenset({"Pending", "Scheduled", "Running"})
#: These pass by themselves, like every 5xx.
MAY_PASS = frozenset({408, 425, 429})


class ClientError(Exception):
    """The root of the errors of this client."""


class Unusable(ClientError, ValueError):
    """An argument cannot be used."""


class ApiError(ClientError):
    """The service refused the request."""

    def __init__(self, status: int, title: str, detail: str, errors: Sequence[Any] = ()) -> None:
        super().__init__(f"{status} {title}: {detail}" if detail else f"{status} {title}")
        self.status, self.title, self.detail, self.errors = status, title, detail, errors


class Unavailable(ClientError):
    """The service gave no usable answer in time."""


class TimedOut(ClientError):
    """The execution has not ended in time. `execution` is what was seen last, or None."""

    def __init__(self, execution_id: int, execution: Json | None) -> None:
        status = execution["status"] if execution else "not known, because the service did not answer"
        super().__init__(f"execution {execution_id} has not ended in time: its status is {status}")
        self.execution = execution


class SpoolFull(ClientError):
    """The queue of reports is full, so the report was not taken."""


class NotSent(ClientError):
    """The service has not answered for all reports in time. `lost` holds those that only memory had."""

    def __init__(self, why: str, lost: "Sequence[Report]" = ()) -> None:
        super().__init__(why)
        self.lost = lost


@dataclass(frozen=True)
class Report:
    """The status of a task in a run (revision). A message that is too long is cut; what the service cannot store
    in it becomes a question mark, because the status matters more."""

    task_id: int
    status: str
    revision: int = 0
    message: str | None = None
    earlier_runs: int = 0

    def __post_init__(self) -> None:
        for name in ("task_id", "revision", "earlier_runs"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_REVISION:
                raise Unusable(f"{name} takes a whole number from 0 to 2^61 - 1")
        if not isinstance(self.status, str) or len(self.status) > MAX_STATUS:
            raise Unusable(f"status takes text of at most {MAX_STATUS} characters")
        if self.message is not None:
            if not isinstance(self.message, str):
                raise Unusable("message takes text")
            storable = self.message.encode("utf-8", "replace").decode().replace("\x00", "?")
            if len(storable) > MAX_MESSAGE:
                storable = storable[: MAX_MESSAGE - 1] + "…"
            object.__setattr__(self, "message", storable)

    def as_line(self) -> bytes:
        """Write it as a line of JSON, without the fields that say nothing."""
        fields = {name: value for name, value in asdict(self).items() if value or name in ("task_id", "status")}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Report":
        """Read what `as_line` wrote. Raises Unusable."""
        try:
            return cls(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            raise Unusable("it is not a report as JSON") from None


class Mark(NamedTuple):
    """A place in the queue: the number of a segment and the bytes before it."""

    segment: int
    offset: int


NOTHING = Mark(0, 0)


@dataclass(frozen=True)
class Batch:
    """The first lines of the queue, which stay there until they are removed. `torn`: the bytes of a line whose
    writer died before it had written all; it has been removed."""

    begin: Mark
    lines: Sequence[bytes] = ()
    torn: int = 0

    @property
    def end(self) -> Mark:
        return Mark(self.begin.segment, self.begin.offset + sum(map(len, self.lines)))


class Queue(Protocol):
    """Reports that wait, as lines of JSON. `acquire` takes the right to send; only its owner takes and removes."""

    def append(self, lines: Sequence[bytes]) -> None: ...
    def end(self) -> Mark: ...
    def has_passed(self, mark: Mark) -> bool: ...
    def acquire(self) -> bool: ...
    def release(self) -> None: ...
    def take(self, count: int) -> Batch: ...
    def remove(self, batch: Batch) -> None: ...
    def close(self) -> None: ...
    def begin_anew(self) -> None: ...


class Memory:
    """The queue of a client without a spool. It ends with its process."""

    def __init__(self, max_reports: int) -> None:
        self._max = max_reports
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin empty: at first, and in a forked child. The reports of the parent stay with the parent."""
        self._lock = threading.Lock()
        self._lines: deque[bytes] = deque()
        self._removed = 0

    def append(self, lines: Sequence[bytes]) -> None:
        with self._lock:
            if len(self._lines) + len(lines) > self._max:
                raise SpoolFull(f"{len(self._lines):,} reports wait in memory, which holds {self._max:,}")
            self._lines.extend(lines)

    def end(self) -> Mark:
        with self._lock:
            return Mark(0, self._removed + len(self._lines))

    def has_passed(self, mark: Mark) -> bool:
        return self._removed >= mark.offset

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def take(self, count: int) -> Batch:
        with self._lock:
            return Batch(NOTHING, _within_bytes(islice(self._lines, count)))

    def remove(self, batch: Batch) -> None:
        with self._lock:
            for _ in batch.lines:
                self._lines.popleft()
            self._removed += len(batch.lines)

    def close(self) -> None:
        pass

    def rest(self) -> list[Report]:
        with self._lock:
            return [Report.from_line(line) for line in self._lines]


def _within_bytes(lines: Iterable[bytes]) -> list[bytes]:
    """Return the first of the lines, at least one, that fit into a request."""
    found: list[bytes] = []
    size = 0
    for line in lines:
        size += len(line)
        if found and size > MAX_BATCH_BYTES:
            break
        found.append(line)
    return found


class Spool:
    """The queue in a directory, which several processes may share.

    Reports are lines of the segments `NUMBER.jsonl`. `sent` says how far the first segment has been answered for;
    a segment that has been answered for is removed. `append.lock` is held while a line is written, `send.lock` by
    the one process that sends, until nothing waits or a request has failed. The kernel releases the locks of a
    process that dies.

    What if a process dies while it writes: its `report()` has not returned, and the torn line is skipped and told.
    What if it dies between the answer and `sent`: the next process sends these reports again, and they change
    nothing. What if the machine loses its power: without `fsync` the last seconds may be missing; a `sent` that
    does not fit its segment counts as 0, so the segment is sent again. What if the disk is full: `report()` raises
    SpoolFull, and sending goes on, because it overwrites `sent` in place and removes segments.
    """

    def __init__(self, directory: str | os.PathLike[str], max_bytes: int, fsync: bool) -> None:
        self._directory = Path(directory)
        self._max = max_bytes
        self._segment = min(max(max_bytes // 16, 1), 8 * 1024**2)
        self._fsync = fsync
        try:
            import fcntl
        except ImportError:
            raise Unusable("a spool needs flock, which this system does not have") from None
        self._flock = fcntl.flock
        self._exclusive, self._at_once, self._unlock = fcntl.LOCK_EX, fcntl.LOCK_NB, fcntl.LOCK_UN
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open()

    def _open(self) -> None:
        self._thread_lock = threading.Lock()
        self._owns = False
        self._appending = self._file("append.lock", os.O_RDWR | os.O_CREAT)
        self._sending = self._file("send.lock", os.O_RDWR | os.O_CREAT)
        self._sent = self._file("sent", os.O_RDWR | os.O_CREAT)

    def _file(self, name: str, flags: int) -> int:
        return os.open(self._directory / name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def begin_anew(self) -> None:
        """Open the files anew in a forked child: a lock belongs to all processes that share an open file."""
        self.close()
        self._open()

    def close(self) -> None:
        for one in (self._appending, self._sending, self._sent):
            os.close(one)

    @contextmanager
    def _no_writer(self) -> Iterator[None]:
        with self._thread_lock:
            self._flock(self._appending, self._exclusive)
            try:
                yield
            finally:
                self._flock(self._appending, self._unlock)

    def _segments(self) -> dict[int, int]:
        """The numbers of the segments, the oldest first, with their sizes."""
        found: dict[int, int] = {}
        with os.scandir(self._directory) as entries:
            for entry in entries:
                stem, _, kind = entry.name.partition(".")
                if kind == "jsonl" and stem.isdecimal():
                    with suppress(FileNotFoundError):  # another process has sent it
                        found[int(stem)] = entry.stat(follow_symlinks=False).st_size
        return dict(sorted(found.items()))

    def _name(self, number: int) -> str:
        return f"{number:012}.jsonl"

    def append(self, lines: Sequence[bytes]) -> None:
        """Append all lines, or none: raises SpoolFull. They survive the process, and with `fsync` the machine."""
        data = b"".join(lines)
        with self._no_writer():
            segments = self._segments()
            used = sum(segments.values())
            if used + len(data) > self._max:
                raise SpoolFull(f"the spool {self._directory} has {used:,} bytes and may have {self._max:,}")
            number, position = max(segments, default=0), self._position()
            size = segments.get(number, self._segment)
            # A `sent` that is ahead of the segment is of a machine that lost its power. What is appended here
            # would count as sent.
            if size >= self._segment or position > Mark(number, size):
                number = max(number, position.segment) + 1
            self._write(number, data)

    def _write(self, number: int, data: bytes) -> None:
        handle = self._file(self._name(number), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":  # a writer has died in its line
                data = b"\n" + data
            try:
                while data:
                    data = data[os.write(handle, data) :]
                if self._fsync:
                    os.fsync(handle)
                    if not size:
                        self._fsync_directory()
            except OSError as exc:
                os.ftruncate(handle, size)
                if exc.errno in (ENOSPC, EDQUOT):
                    raise SpoolFull(f"the disk of the spool {self._directory} is full") from exc
                raise
        finally:
            os.close(handle)

    def _fsync_directory(self) -> None:
        directory = os.open(self._directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _position(self) -> Mark:
        """How far the service has answered."""
        words = os.pread(self._sent, 64, 0).split()
        if len(words) == 2 and all(word.isdigit() for word in words):
            return Mark(int(words[0]), int(words[1]))
        return NOTHING

    def end(self) -> Mark:
        segments = self._segments()
        number = max(segments, default=0)
        return Mark(number, segments.get(number, 0))

    def has_passed(self, mark: Mark) -> bool:
        return self._position() >= mark or not self._segments()

    def acquire(self) -> bool:
        if not self._owns:
            try:
                self._flock(self._sending, self._exclusive | self._at_once)
            except BlockingIOError:
                return False
            self._owns = True
        return True

    def release(self) -> None:
        if self._owns:
            self._flock(self._sending, self._unlock)
            self._owns = False

    def take(self, count: int) -> Batch:
        """Return the first lines that were not answered for; remove the segments before them.

        While no writer holds the lock, a last line without its line feed is torn.
        """
        torn = 0
        with self._no_writer():
            for number, size in self._segments().items():
                position = self._position()
                is_here = position.segment == number and position.offset <= size
                begin = Mark(number, position.offset if is_here else 0)
                if lines := self._whole_lines(begin, count):
                    return Batch(begin, _within_bytes(lines), torn)
                torn += size - begin.offset
                os.unlink(self._directory / self._name(number))
        return Batch(NOTHING, torn=torn)

    def _whole_lines(self, begin: Mark, count: int) -> Sequence[bytes]:
        """Read the next lines, each with its line feed. So many bytes without one are a line that is no report."""
        handle = self._file(self._name(begin.segment), os.O_RDONLY)
        try:
            data = os.pread(handle, MAX_BATCH_BYTES, begin.offset)
        finally:
            os.close(handle)
        if len(data) == MAX_BATCH_BYTES and b"\n" not in data:
            return [data]
        return [line + b"\n" for line in data.split(b"\n", count)[:-1]]

    def remove(self, batch: Batch) -> None:
        """Note how far the service has answered, and then remove a segment that ends there: without the note, a
        new segment could get its number and an old place."""
        end = batch.end
        os.pwrite(self._sent, f"{end.segment:020} {end.offset:020}\n".encode(), 0)
        with self._no_writer():
            if self._segments().get(end.segment) == end.offset:
                os.unlink(self._directory / self._name(end.segment))


@dataclass(frozen=True)
class Answer:
    """What the service answered: success or a refusal. `body` is None if it is not JSON."""

    status: int
    body: Any
    is_problem: bool
    location: str = ""

    @property
    def may_blame_reports(self) -> bool:
        """Whether something may be wrong with the reports. Any other refusal concerns the address or the token,
        and a 400 or 422 of another program (a proxy, for example) says nothing about them."""
        return self.status == 413 or (self.is_problem and self.status in (400, 422))

    def error(self) -> ApiError:
        if self.location:
            return ApiError(self.status, "Redirect", f"to {self.location!r}, which is not followed")
        fields = self.body if self.is_problem and isinstance(self.body, dict) else {}
        title = str(fields.get("title", "which is no answer of the API"))
        return ApiError(self.status, title, str(fields.get("detail", "")), fields.get("errors") or ())


@dataclass(frozen=True)
class Trouble:
    """There is no answer, or one that passes by itself. `is_undone`: the request has certainly changed nothing."""

    text: str
    is_undone: bool = False
    retry_after: float = 0.0


class Service:
    """The service over HTTP. Owns the token, which is in the headers of the requests and nowhere else."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable or parts.query or parts.fragment or "@" in parts.netloc:
            raise Unusable("the url takes http://host[:port] or https://host[:port], without a user")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise Unusable("the token takes the text that the service has shown, in one line")
        self.url = url.rstrip("/").removesuffix("/api/v1")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._timeout = timeout
        # A proxy may close an idle connection after a few seconds, so it is not used again after 1 s.
        self._connect: Callable[[], httpx2.Client] = lambda: httpx2.Client(
            headers=headers, timeout=timeout, follow_redirects=False, limits=httpx2.Limits(keepalive_expiry=1.0)
        )
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin without a connection: at first, and in a forked child. A connection that two processes use mixes
        up their answers."""
        self._lock = threading.Lock()
        self._http: httpx2.Client | None = None

    def _connected(self) -> httpx2.Client:
        with self._lock:
            self._http = self._http or self._connect()
            return self._http

    def close(self) -> None:
        with self._lock:
            if self._http:
                self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        params: Sequence[tuple[str, str]] = (),
        key: str | None = None,
    ) -> Answer | Trouble:
        """Send one request. It raises no error of HTTP, because such an error refers to the request's headers."""
        headers = {"Idempotency-Key": key} if key else {}
        url = f"{self.url}/api/v1{path}"
        try:
            stream = self._connected().stream(method, url, content=content, params=[*params], headers=headers)
            with stream as response:
                raw = self._read(response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as exc:
            return Trouble(_said_by(exc), is_undone=True)
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            return Trouble(_said_by(exc))
        if raw is None:
            return Trouble("its answer is too long or takes too long")
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        try:
            body = json.loads(raw) if raw else None
        except (ValueError, RecursionError):
            body = None
        location = response.headers.get("Location", "")[:200] if response.is_redirect else ""
        answer = Answer(response.status_code, body, kind == "application/problem+json", location)
        if answer.status in MAY_PASS or answer.status >= 500:
            wish = _seconds_wished(response.headers.get("Retry-After", ""))
            return Trouble(f"it answered {answer.error()}", answer.status in (429, 503), wish)
        return answer

    def _read(self, response: httpx2.Response) -> bytes | None:
        """Read the answer, within a size and a time: each part of it may take `timeout`, and it may have many."""
        end = time.monotonic() + 2 * self._timeout
        content = bytearray()
        for part in response.iter_bytes():
            content += part
            if len(content) > MAX_ANSWER_BYTES or time.monotonic() > end:
                return None
        return bytes(content)


def _said_by(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__


def _seconds_wished(header: str) -> float:
    """Read Retry-After: seconds, or a date."""
    try:
        wished = float(header) if header.isdecimal() else parsedate_to_datetime(header).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(wished, 0.0), LONGEST_WISH)


@dataclass
class Pauses:
    """Pauses between tries: they double, up to a limit. Because of the jitter many clients do not come at once."""

    first: float
    longest: float
    failures: int = 0

    def next(self, wished: float = 0.0) -> float:
        pause = min(self.longest, self.first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return max(wished, pause * random.uniform(0.5, 1.0))  # noqa: S311  # no secret depends on it


OnRefused = Callable[[Report | None, str], Any]


@dataclass
class Sender:
    """The thread that sends the queue. `counts`: how many reports were applied, unchanged and refused."""

    service: Service
    queue: Queue
    on_refused: OnRefused | None
    linger: float
    pauses: Pauses
    counts: Counter[str] = field(default_factory=Counter)
    #: Failed requests in all, and the reason of the last one.
    failed: int = 0
    trouble: str = "no request has been made"
    _size: int = MAX_BATCH
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin without a thread: at first, and in a forked child."""
        #: Guards all below, and is notified of each change.
        self._changed = threading.Condition()
        self._thread = None
        #: Reports that were appended since the last look, and how many of them fill the batch that waits for them.
        self._fresh = self._wanted = 0
        #: Calls of `flush` that wait, and whether one began since the last look.
        self._flushes, self._again = 0, False
        self._ended = False

    def note_appended(self, count: int) -> None:
        with self._changed:
            self._fresh += count
            if self._fresh == count or self._fresh >= self._wanted:
                self._changed.notify_all()
            self._start()

    def start(self) -> None:
        with self._changed:
            self._start()

    def _start(self) -> None:
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._run, name="harbor-refresh-reports", daemon=True)
            self._thread.start()

    def flush(self, mark: Mark, timeout: float, tries: float = math.inf) -> bool:
        """Send now, and wait until the service has answered for everything before the mark. False: it has not,
        in this time or in so many tries."""
        end, failed_before = time.monotonic() + timeout, self.failed
        if self.queue.has_passed(mark):
            return True
        with self._changed:
            self._start()
            self._flushes += 1
            self._again = True
            self._changed.notify_all()
            try:
                while not self.queue.has_passed(mark):
                    left = end - time.monotonic()
                    if left <= 0 or self.failed - failed_before >= tries or self._ended:
                        return False
                    self._changed.wait(min(left, 0.1))
                return True
            finally:
                self._flushes -= 1

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def join(self, timeout: float) -> bool:
        """Wait for the end of the thread. False: it waits for an answer, and ends with the process."""
        if self._thread:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ended:
            try:
                self._step()
            except Exception as exc:  # the spool's disk, or a fault of ours; what waits stays in the queue
                self._fail(_said_by(exc))
        self.queue.release()

    def _step(self) -> None:
        """Send one batch, if there is one and this process is the one that sends."""
        if not self.queue.acquire():
            self._wait(0.1, lambda: False)
            return
        batch = self._take()
        if not batch.lines:
            self.queue.release()
            self._wait(0.5, lambda: self._fresh > 0 or self._again)
            return
        self._send(self._filled(batch))

    def _filled(self, batch: Batch) -> Batch:
        """Wait until the batch is full, or for `linger`. A report that is appended during a look is in the batch,
        and is counted as fresh, too, so only another look tells. If that adds nothing, it is full by its bytes."""
        end = time.monotonic() + self.linger
        known = 0
        while known < len(batch.lines) < self._size and (left := end - time.monotonic()) > 0:
            known = len(batch.lines)
            self._wanted = self._size - known
            self._wait(left, lambda: self._flushes > 0 or self._fresh >= self._wanted)
            is_due = self._flushes > 0 or self._again or self._ended
            batch = self._take()
            if is_due:
                break
        return batch

    def _take(self) -> Batch:
        with self._changed:
            self._fresh, self._again = 0, False
        batch = self.queue.take(self._size)
        if batch.torn:
            self._refuse(None, f"the spool ended with {batch.torn:,} bytes of a report whose process had died")
        return batch

    def _wait(self, seconds: float, is_over: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or is_over(), seconds)

    def _send(self, batch: Batch) -> None:
        """Post a batch; tell of what was refused; remove it. It stays in the queue if it must be sent again."""
        reports = [_read(line) for line in batch.lines]
        results = self._post([line.strip() for line, one in zip(batch.lines, reports, strict=True) if one])
        if results is None:
            return
        left = iter(results)
        for line, report in zip(batch.lines, reports, strict=True):
            result, reason = (
                next(left) if report else ("refused", f"{len(line):,} bytes of the spool are no report")
            )
            if result == "refused" and line.strip():
                self._refuse(report, reason)
        self._succeed(batch, Counter(result for result, _ in results))

    def _post(self, lines: Sequence[bytes]) -> Sequence[tuple[str, str]] | None:
        """Post these reports, and return the result of each with its reason. None: they must be sent again.

        If the service refuses all of them, fewer are sent, until the one that it refuses stands alone.
        """
        if not lines:
            return []
        answer = self.service.ask("POST", "/reports", b'{"reports":[' + b",".join(lines) + b"]}")
        if isinstance(answer, Trouble):
            self._fail(answer.text, answer.retry_after)
            return None
        results = _results_of(answer, len(lines))
        if results is not None:
            self._size = min(2 * self._size, MAX_BATCH)
            return results
        if not answer.may_blame_reports:
            self._fail(f"it answered {answer.error()}")
            return None
        if len(lines) > 1:
            self._size = len(lines) // 2
            return None
        return [("refused", str(answer.error()))]

    def _refuse(self, report: Report | None, reason: str) -> None:
        """Tell of a report that will not be sent again. It is told before it is removed: a process that dies in
        between tells it twice, and never not at all."""
        log.warning("Refused report of task %s: %s", report.task_id if report else "unknown", reason)
        if self.on_refused is not None:
            try:
                self.on_refused(report, reason)
            except Exception:
                log.error("The function on_refused failed", exc_info=True)

    def _fail(self, trouble: str, wished: float = 0.0) -> None:
        """Note a failure, and pause. Meanwhile another process may send, because only the token or the way of this
        one may be wrong."""
        self.queue.release()
        if self._ended:  # and its connection is closed
            return
        if not self.pauses.failures:
            log.warning("The service takes no reports, they wait: %s", trouble)
        pause = self.pauses.next(wished)
        with self._changed:
            self.failed += 1
            self.trouble = trouble
            self._changed.notify_all()
        self._wait(pause, lambda: self._again and not wished)

    def _succeed(self, batch: Batch, results: Counter[str]) -> None:
        """Count, and then remove: a flush that returns has counted what it has sent. The lock is free meanwhile,
        because another process may keep the file of the spool for long."""
        if self.pauses.failures:
            log.info("The service takes reports again, after %d failed requests", self.pauses.failures)
        self.pauses.failures = 0
        with self._changed:
            self.counts += results
        try:
            self.queue.remove(batch)
        except BaseException:  # it is sent again
            with self._changed:
                self.counts -= results
            raise
        with self._changed:
            self._changed.notify_all()


def _read(line: bytes) -> Report | None:
    try:
        return Report.from_line(line)
    except Unusable:
        return None


def _results_of(answer: Answer, count: int) -> list[tuple[str, str]] | None:
    """The result of each report and its reason; None if the answer does not have them. Anything may answer 200,
    for example the login page of a proxy."""
    results = answer.body.get("results") if answer.status == 200 and isinstance(answer.body, dict) else None
    if not isinstance(results, list) or len(results) != count:
        return None
    if not all(isinstance(one, dict) and isinstance(one.get("result"), str) for one in results):
        return None
    return [(one["result"], str(one.get("reason") or "")) for one in results]


class Client:
    """The service, as a runner uses it. Threads may share one; close it, or use it in a `with`.

    `spool`: a directory in which reports wait. Several processes may share it. Without it they wait in memory, and
    end with the process. `fsync`: a report survives the loss of power as well. `on_refused(report, reason)` is
    called from the thread that sends, for each report that the service refuses; report is None if a line of the
    spool cannot be read. `timeout`: seconds for one answer. `patience`: seconds for which a call is tried again.
    """

    def __init__(
        self,
        url: str,
        token: str,
        spool: str | os.PathLike[str] | None = None,
        *,
        fsync: bool = False,
        max_spool_bytes: int = 100_000_000,
        max_reports_in_memory: int = 10_000,
        on_refused: OnRefused | None = None,
        timeout: float = 10.0,
        patience: float = 30.0,
        linger: float = 0.5,
        first_pause: float = 0.2,
        longest_pause: float = 15.0,
        close_timeout: float = 10.0,
    ) -> None:
        self._service = Service(url, token, timeout)
        self._queue = Spool(spool, max_spool_bytes, fsync) if spool else Memory(max_reports_in_memory)
        self._pauses = (first_pause, longest_pause)
        self._sender = Sender(self._service, self._queue, on_refused, linger, Pauses(*self._pauses))
        self._patience, self._close_timeout = patience, close_timeout
        self._is_closed = False
        _open_clients.add(self)
        if spool:
            self._sender.start()

    def __repr__(self) -> str:
        return f"Client({self._service.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except NotSent:
            if kind is None:
                raise

    @property
    def counts(self) -> dict[str, int]:
        """How many reports this client has sent that were applied, unchanged and refused."""
        return {name: self._sender.counts[name] for name in ("applied", "unchanged", "refused")}

    @property
    def failures(self) -> int:
        """How many requests with reports have failed since the last that succeeded."""
        return self._sender.pauses.failures

    def create(
        self,
        vendor_type: str,
        *,
        vendor_id: int | str | uuid.UUID = 0,
        trigger: str = "MANUAL",
        extra_attrs: Mapping[str, Any] | None = None,
        tasks: Sequence[Mapping[str, Any]] = (),
        idempotency_key: str | None = None,
    ) -> Json:
        """Create an execution with its tasks, and return it with `task_ids` in the order of the tasks.

        It is created once, however often the request is tried. Give a key of your own (of the run, for example) if
        this process may die and another one creates the same.
        """
        body = {
            "vendor_type": vendor_type,
            "vendor_id": str(vendor_id) if isinstance(vendor_id, uuid.UUID) else vendor_id,
            "trigger": trigger,
            "extra_attrs": extra_attrs or {},
            "tasks": list(tasks),
        }
        return self._call("POST", "/executions", body, key=_key(idempotency_key))

    def add_tasks(
        self, execution_id: int, tasks: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[int]:
        """Add tasks to an execution that has not ended, and return their ids."""
        body = {"tasks": list(tasks)}
        added = self._call("POST", _path(execution_id, "/tasks"), body, key=_key(idempotency_key))
        ids: Sequence[int] = added["task_ids"]
        return ids

    def report(
        self, task_id: int, status: str, revision: int = 0, message: str | None = None, earlier_runs: int = 0
    ) -> None:
        """Queue a report. Raises SpoolFull if there is no room for it."""
        self.report_many([Report(task_id, status, revision, message, earlier_runs)])

    def report_many(self, reports: Iterable[Report]) -> None:
        """Queue all of these reports; or none, and raise SpoolFull."""
        if self._is_closed:
            raise ClientError("the client is closed")
        lines = [one.as_line() for one in reports]
        if lines:
            self._queue.append(lines)
            self._sender.note_appended(len(lines))

    def flush(self, timeout: float = 30.0, *, tries: float = math.inf) -> None:
        """Wait until the service has answered for every report that waits now, also for those of other processes.

        Raises NotSent after this time, or after so many requests that failed. The reports stay in the queue.
        """
        if not self._sender.flush(self._queue.end(), timeout, tries):
            raise NotSent(f"reports wait in the queue: {self._sender.trouble}")

    def close(self, timeout: float | None = None) -> None:
        """Send what waits, for `timeout` seconds at most. What is left stays in the spool; without a spool it is
        lost, and NotSent is raised with it."""
        if self._is_closed:
            return
        self._is_closed = True
        _open_clients.discard(self)
        timeout = self._close_timeout if timeout is None else timeout
        # With a spool one failed request is enough: the next process sends the rest.
        tries = 1 if isinstance(self._queue, Spool) else math.inf
        is_sent = self._sender.flush(self._queue.end(), timeout, tries)
        self._sender.end()
        has_ended = self._sender.join(timeout=1.0)
        self._service.close()  # a request that goes on fails
        if has_ended or self._sender.join(timeout=1.0):
            self._queue.close()
        if not is_sent:
            self._tell_what_is_left()

    def _tell_what_is_left(self) -> None:
        trouble = self._sender.trouble
        if isinstance(self._queue, Memory):
            lost = self._queue.rest()
            log.error("Lost %d reports that could not be sent in time: %s", len(lost), trouble)
            raise NotSent(f"{len(lost):,} reports could not be sent: {trouble}", lost)
        log.info("Reports stay in the spool for the next process: %s", trouble)

    def get(self, execution_id: int) -> Json:
        """One execution, with its counts, progress and quarantine."""
        return self._call("GET", _path(execution_id))

    def task(self, task_id: int) -> Json:
        return self._call("GET", f"/tasks/{int(task_id)}")

    def tasks(self, execution_id: int, *, status: Sequence[str] = ()) -> Iterator[Json]:
        """The tasks of an execution, the oldest first."""
        return self._pages(_path(execution_id, "/tasks"), {"status": status})

    def history(self, execution_id: int) -> Iterator[Json]:
        """The changes of its status, the oldest first."""
        return self._pages(_path(execution_id, "/history"), {})

    def stop(self, execution_id: int) -> Json:
        """Stop an execution: its unfinished tasks become Stopped. Returns the execution."""
        return self._call("POST", _path(execution_id, "/stop"))

    def retry(self, execution_id: int) -> int:
        """Try its failed jobs once more, and return how many.

        It is sent again only if the service has certainly not done it: jobs that failed again would run again.
        """
        return self._run_again(execution_id, "/retry", "retried")

    def resume(self, execution_id: int) -> int:
        """Run its stopped jobs once more, and return how many. It is sent again only as `retry` is."""
        return self._run_again(execution_id, "/resume", "resumed")

    def _run_again(self, execution_id: int, verb: str, counted: str) -> int:
        count: int = self._call("POST", _path(execution_id, verb), is_repeatable=False)[counted]
        return count

    def delete(self, execution_id: int) -> None:
        """Delete an execution that has ended; ApiError 412 if it has not."""
        self._call("DELETE", _path(execution_id))

    def wait(self, execution_id: int, timeout: float = math.inf) -> Json:
        """Wait until the execution has ended, and return it. A service that is away is waited for.

        Raises TimedOut. Send your own reports first (`flush`), or the execution does not end.
        """
        end = time.monotonic() + timeout
        pause, seen = 0.1, None
        while True:
            with suppress(Unavailable):
                seen = self._call("GET", _path(execution_id), patience=end - time.monotonic())
                if seen["status"] not in UNFINISHED:
                    return seen
            left = end - time.monotonic()
            if left <= 0:
                raise TimedOut(execution_id, seen)
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, 5.0)

    def list(
        self,
        *,
        vendor_type: str = "",
        vendor_id: int | str | uuid.UUID | None = None,
        status: Sequence[str] = (),
        trigger: str = "",
        started_after: str = "",
        started_before: str = "",
        attributes: Mapping[str, str] | None = None,
        page: int = 100,
    ) -> Iterator[Json]:
        """The executions that match every filter, the newest first; pages are read as they are needed."""
        filters = {
            "vendor_type": vendor_type or None,
            "vendor_id": vendor_id,
            "status": status,
            "trigger": trigger or None,
            "started_after": started_after or None,
            "started_before": started_before or None,
            "attribute": [f"{path}={value}" for path, value in (attributes or {}).items()],
        }
        return self._pages("/executions", filters, page)

    def _pages(self, path: str, filters: Mapping[str, Any], page: int = 100) -> Iterator[Json]:
        given = [(name, value if isinstance(value, list | tuple) else [value]) for name, value in filters.items()]
        params = [(name, str(one)) for name, values in given for one in values if one is not None]
        cursor = ""
        while True:
            more = [("cursor", cursor)] if cursor else []
            found = self._call("GET", path, params=[*params, ("limit", str(page)), *more])
            yield from found["items"]
            if not (cursor := found["next"]):
                return

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Sequence[tuple[str, str]] = (),
        key: str | None = None,
        is_repeatable: bool = True,
        patience: float | None = None,
    ) -> Json:
        """Ask until there is an answer; raise ApiError for a refusal and Unavailable when the patience is over."""
        end = time.monotonic() + (self._patience if patience is None else patience)
        content = None if body is None else json.dumps(body).encode()
        pauses = Pauses(*self._pauses)
        may_be_done = False
        while True:
            answer = self._service.ask(method, path, content, params, key)
            if isinstance(answer, Answer):
                if 200 <= answer.status < 300 and isinstance(answer.body, dict):
                    return answer.body
                was_deleted = method == "DELETE" and may_be_done and answer.status == 404
                if answer.status == 204 or was_deleted:
                    return {}
                raise answer.error()
            may_be_done = may_be_done or not answer.is_undone
            pause = pauses.next(answer.retry_after)
            if time.monotonic() + pause > end or (may_be_done and not is_repeatable):
                raise Unavailable(f"{self._service.url}: {answer.text}")
            time.sleep(pause)

    def begin_anew(self) -> None:
        for part in (self._service, self._queue, self._sender):
            part.begin_anew()


def _path(execution_id: int, rest: str = "") -> str:
    return f"/executions/{int(execution_id)}{rest}"


def _key(given: str | None) -> str:
    if given is None:
        return uuid.uuid4().hex
    if not 0 < len(given) <= MAX_KEY or not given.isascii() or not given.isprintable() or " " in given:
        raise Unusable(f"an Idempotency-Key takes up to {MAX_KEY} characters of ASCII without blanks")
    return given


_open_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


def _begin_anew_in_child() -> None:
    """A forked child has no thread that sends, and must not use the connections and locks of its parent."""
    for client in list(_open_clients):
        client.begin_anew()


def _close_all() -> None:
    for client in list(_open_clients):
        with suppress(NotSent):  # it was logged
            client.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew_in_child)


# The shell


class Misuse(Exception):
    """The command line or the environment cannot be used."""


def _created(client: Client, given: argparse.Namespace) -> int:
    found = client.create(
        given.vendor_type,
        vendor_id=given.vendor_id,
        trigger=given.trigger,
        extra_attrs=_object(given.attributes),
        tasks=_tasks(given),
        idempotency_key=given.key,
    )
    _say(given, found, " ".join(map(str, [found["id"], *found["task_ids"]])))
    return 0


def _added(client: Client, given: argparse.Namespace) -> int:
    ids = client.add_tasks(given.id, _tasks(given))
    _say(given, {"task_ids": ids}, " ".join(map(str, ids)))
    return 0


def _tasks(given: argparse.Namespace) -> list[dict[str, Any]]:
    return [{"job_id": one} for one in given.job or ()] or [{}] * given.tasks


def _reported(client: Client, given: argparse.Namespace) -> int:
    """Report one task, or the lines of the standard input; then send."""
    unusable = 0
    if given.task_id == "-":
        if given.status is not None:
            raise Misuse("`report -` reads its reports from the standard input and takes no status")
        for number, line in enumerate(sys.stdin.buffer, 1):
            try:
                if line.strip():
                    client.report_many([Report.from_line(line)])
            except Unusable as exc:
                unusable += 1
                sys.stderr.write(f"line {number}: {exc}\n")
    else:
        if given.status is None or not given.task_id.isdecimal():
            raise Misuse("report takes TASK_ID STATUS, or - for the standard input")
        client.report(int(given.task_id), given.status, given.revision, given.message)
    return _flushed(client, given) or int(unusable > 0)


def _flushed(client: Client, given: argparse.Namespace) -> int:
    """Send what waits. A service that is away is no failure if there is a spool."""
    spooled = ""
    try:
        client.flush(given.timeout, tries=1 if given.spool else math.inf)
    except NotSent as exc:
        if not given.spool:
            raise
        spooled = str(exc)
    counts = client.counts
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    _say(given, {**counts, "spooled": bool(spooled)}, f"spooled, not all is sent: {spooled}" if spooled else told)
    return int(counts["refused"] > 0)


def _waited(client: Client, given: argparse.Namespace) -> int:
    try:
        found = client.wait(given.id, given.timeout)
    except TimedOut as exc:
        sys.stderr.write(f"{exc}\n")
        return 3
    _say(given, found, found["status"])
    return 0 if found["status"] == "Success" else 1


def _shown(client: Client, given: argparse.Namespace) -> int:
    found = client.get(given.id)
    _say(given, found, "\n".join(f"{name}: {_text(value)}" for name, value in found.items()))
    return 0


def _stopped(client: Client, given: argparse.Namespace) -> int:
    found = client.stop(given.id)
    _say(given, found, found["status"])
    return 0


def _retried(client: Client, given: argparse.Namespace) -> int:
    count = client.retry(given.id)
    _say(given, {"retried": count}, f"{count} retried")
    return 0


def _resumed(client: Client, given: argparse.Namespace) -> int:
    count = client.resume(given.id)
    _say(given, {"resumed": count}, f"{count} resumed")
    return 0


def _deleted(client: Client, given: argparse.Namespace) -> int:
    client.delete(given.id)
    _say(given, {"deleted": given.id}, "deleted")
    return 0


#: What `list` prints of an execution.
COLUMNS = ("id", "vendor_type", "vendor_key", "status", "start_time", "end_time")


def _listed(client: Client, given: argparse.Namespace) -> int:
    """One execution a line, so that a reader need not wait for the end."""
    found = client.list(
        vendor_type=given.vendor_type,
        vendor_id=given.vendor_id,
        status=given.status or (),
        trigger=given.trigger,
        attributes=dict(_pair(one) for one in given.attribute or ()),
        page=min(given.limit, 500),
    )
    for one in islice(found, given.limit):
        columns = [one[name] for name in COLUMNS]
        _say(given, one, "\t".join("-" if value is None else str(value) for value in columns))
    return 0


def _pair(text: str) -> tuple[str, str]:
    path, is_there, value = text.partition("=")
    if not is_there:
        raise Misuse("--attribute takes PATH=VALUE")
    return path, value


def _object(text: str) -> Json:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Misuse("--attributes takes an object as JSON")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _say(given: argparse.Namespace, data: Any, text: str) -> None:
    sys.stdout.write((json.dumps(data) if given.json else text) + "\n")
    sys.stdout.flush()


def _whole(text: str) -> int:
    value = int(text)
    if not 0 < value < 2**63:
        raise ValueError(text)
    return value


_whole.__name__ = "whole number"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harbor_refresh.client",
        description="Report to Harbor Refresh and ask it. The token is read from HARBOR_REFRESH_TOKEN, or from "
        "the file that HARBOR_REFRESH_TOKEN_FILE names.",
        epilog="exit codes: 0 success, 1 failure, 2 misuse; wait: 0 Success, 1 another end, 3 not ended in time",
    )
    parser.add_argument("--url", default=os.environ.get("HARBOR_REFRESH_URL", ""), help="or HARBOR_REFRESH_URL")
    spool = os.environ.get("HARBOR_REFRESH_SPOOL", "")
    parser.add_argument("--spool", default=spool, help="directory in which reports wait, or HARBOR_REFRESH_SPOOL")
    parser.add_argument("--fsync", action="store_true", help="a spooled report survives the loss of power as well")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, act: Callable[[Client, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        one = verbs.add_parser(name, help=text, description=text)
        one.add_argument("--json", action="store_true", help="print JSON")
        one.set_defaults(act=act, needs_spool=name in ("report", "flush"))
        return one

    def of_one(name: str, act: Callable[[Client, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        one = verb(name, act, text)
        one.add_argument("id", type=_whole, metavar="EXECUTION_ID")
        return one

    def takes_tasks(one: argparse.ArgumentParser) -> None:
        tasks = one.add_mutually_exclusive_group()
        tasks.add_argument("--tasks", type=_whole, default=1, metavar="N", help="how many tasks (1)")
        tasks.add_argument("--job", action="append", metavar="JOB_ID", help="a task with this job id; repeat it")

    create = verb("create", _created, "create an execution; print its id and the ids of its tasks")
    create.add_argument("vendor_type")
    create.add_argument("--vendor-id", default=0, help="a number, or text such as a UUID")
    create.add_argument("--trigger", default="MANUAL")
    create.add_argument("--attributes", default="{}", metavar="JSON", help="extra_attrs, an object")
    create.add_argument("--key", help="Idempotency-Key: with the same key the execution is created once")
    takes_tasks(create)
    takes_tasks(of_one("add", _added, "add tasks to an execution; print their ids"))
    report = verb("report", _reported, "report the status of a task, or one report a line of JSON")
    report.add_argument("task_id", metavar="TASK_ID", help="or - for the standard input")
    report.add_argument("status", nargs="?", metavar="STATUS")
    report.add_argument("--revision", type=int, default=0)
    report.add_argument("--message")
    flush = verb("flush", _flushed, "send what waits in the spool")
    for one, seconds in ((report, 10.0), (flush, 60.0)):
        one.add_argument("--timeout", type=float, default=seconds, help=f"seconds to send ({seconds:g})")
    wait = of_one("wait", _waited, "wait until an execution has ended; print its status")
    wait.add_argument("--timeout", type=float, default=math.inf, help="seconds (any number)")
    of_one("show", _shown, "show one execution")
    of_one("stop", _stopped, "stop an execution")
    of_one("retry", _retried, "try the failed jobs of an execution once more")
    of_one("resume", _resumed, "run the stopped jobs of an execution once more")
    of_one("delete", _deleted, "delete an execution that has ended")
    listing = verb("list", _listed, "list executions, the newest first: id, vendor, vendor id, status, start, end")
    listing.add_argument("--vendor-type", default="")
    listing.add_argument("--vendor-id")
    listing.add_argument("--status", action="append", help="repeat it for several")
    listing.add_argument("--trigger", default="")
    listing.add_argument(
        "--attribute", action="append", metavar="PATH=VALUE", help="a dotted path into extra_attrs"
    )
    listing.add_argument("--limit", type=_whole, default=100, help="executions at most (100)")
    return parser


def _token() -> str:
    path = os.environ.get("HARBOR_REFRESH_TOKEN_FILE", "")
    if not path:
        return os.environ.get("HARBOR_REFRESH_TOKEN", "").strip()
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise Misuse(f"HARBOR_REFRESH_TOKEN_FILE: {type(exc).__name__}: the file cannot be read as text") from None


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        if given.act is _flushed and not given.spool:
            raise Misuse("flush takes a spool: --spool or HARBOR_REFRESH_SPOOL")
        spool = given.spool if given.needs_spool else ""
        with Client(given.url, _token(), spool or None, fsync=given.fsync, close_timeout=0) as client:
            return int(given.act(client, given))
    except (Misuse, Unusable) as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 2
    except (ClientError, OSError) as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 1
    except KeyboardInterrupt:
        return 1


if __name__ == "__main__":
    sys.exit(main())
