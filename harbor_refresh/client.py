"""A client of the HTTP API, in one file: copy it to the runners. It needs Python 3.11, httpx2 and nothing else.

    with Client("https://refresh.example", token) as client:
        execution = client.create("REPLICATION", tasks=[{"job_id": "layer 1"}])
        client.report(execution["task_ids"][0], "Success")

`report()` appends to a queue. A thread sends the queue in batches, in order, and removes a report only when the
service has answered for it. So a report may be sent twice; the service compares revision and status, so the
second report changes nothing. Errors, log lines and representations never contain the token.

From a shell: `python -m harbor_refresh.client --help`.
"""

import argparse
import atexit
import json
import logging
import math
import os
import random
import re
import sys
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import httpx2

log = logging.getLogger("harbor_refresh.client")

Json = dict[str, Any]

#: The service takes 10,000 reports in a request; smaller requests lose less when they fail.
MAX_BATCH = 1_000
#: In characters; the service refuses longer ones.
MAX_MESSAGE = 10_000
#: Seconds: for a batch to fill, between tries (from the first pause to the longest), and of a Retry-After at most.
LINGER = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 15.0
MAX_RETRY_AFTER = 300.0


class ClientError(Exception):
    """The root of the errors of this client."""


class Unusable(ClientError, ValueError):
    """An argument cannot be used."""


class ApiError(ClientError):
    """The service refused the request. `is_problem`: the API says so, and not a proxy, for example."""

    def __init__(self, status: int, problem: Json | None = None) -> None:
        self.status, self.is_problem = status, problem is not None
        problem = problem or {"title": "which is no answer of the API"}
        self.title, self.detail = str(problem.get("title", "")), str(problem.get("detail", ""))
        self.errors: Sequence[Any] = problem.get("errors") or ()
        super().__init__(": ".join(filter(None, (f"{status} {self.title}", self.detail))))


class Unavailable(ClientError):
    """The service gave no usable answer in time. `retry_after`: the seconds for which it asks for no request."""

    def __init__(self, why: str, retry_after: float = 0.0) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class TimedOut(ClientError):
    """The execution has not ended in time. `execution` is its last known state, or None."""

    def __init__(self, execution_id: int, execution: Json | None) -> None:
        status = execution["status"] if execution else "not known, because the service did not answer"
        super().__init__(f"execution {execution_id} has not ended in time: its status is {status}")
        self.execution = execution


class QueueFull(ClientError):
    """The queue of reports is full, so the report was not taken."""


class NotSent(ClientError):
    """The service has not answered for all reports in time. After `close()`, `lost` holds these reports."""

    def __init__(self, why: str, lost: "Sequence[Report]" = ()) -> None:
        super().__init__(why)
        self.lost = lost


@dataclass(frozen=True)
class Report:
    """The status of a task in a run (revision). A message that is too long is cut, and a character that cannot be
    stored becomes a question mark, because the status matters more."""

    task_id: int
    status: str
    revision: int = 0
    message: str | None = None
    earlier_runs: int = 0

    def __post_init__(self) -> None:
        if self.message is not None:
            storable = self.message.encode("utf-8", "replace").decode().replace("\x00", "?")
            if len(storable) > MAX_MESSAGE:
                storable = storable[: MAX_MESSAGE - 1] + "…"
            object.__setattr__(self, "message", storable)

    def as_line(self) -> bytes:
        """Write the report as a line of JSON, without the fields that have their default."""
        given = asdict(self).items()
        fields = {name: one for name, one in given if one not in (None, 0) or name in ("task_id", "status")}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Report":
        """Read a line that `as_line` wrote. Raises Unusable."""
        try:
            return cls(**json.loads(line))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise Unusable("it is not a report as JSON") from None


def _checked(url: str, token: str) -> str:
    """Return the address of the service. Raises Unusable, without the token."""
    if not re.fullmatch(r"https?://([\w.-]+|\[[\da-fA-F:.]+\])(:\d+)?(/[^?#\s]*)?", url):
        takes = "http://host[:port] or https://host[:port], without a user"
        is_set = "" if url else ", which is not set"
        raise Unusable(f"the url takes {takes}; commands read it from HARBOR_REFRESH_URL{is_set}")
    if not re.fullmatch(r"[!-~]+", token):
        takes = "the text that the service has shown, in one line"
        raise Unusable(f"the token takes {takes}; commands read it from HARBOR_REFRESH_TOKEN")
    return url.rstrip("/").removesuffix("/api/v1")


def _keyed(key: str | None) -> dict[str, str]:
    if key is not None and not re.fullmatch(r"[!-~]{1,200}", str(key)):
        raise Unusable("an Idempotency-Key takes 1 to 200 visible ASCII characters")
    return {"Idempotency-Key": uuid.uuid4().hex if key is None else key}


def _text_of(exc: Exception) -> str:
    return str(exc) if isinstance(exc, ClientError) else f"{type(exc).__name__}: {exc}".removesuffix(": ")


def _retry_after(header: str) -> float:
    """Read Retry-After in seconds. A date, which some proxies send, asks for nothing."""
    return min(float(header), MAX_RETRY_AFTER) if header.isdecimal() else 0.0


def _pause(failures: int, retry_after: float) -> float:
    """Return the pause after so many failures: it doubles up to a limit, and jitter spreads many clients."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 30))
    return max(retry_after, pause * random.uniform(0.5, 1.0))  # noqa: S311  # no secret depends on it


OnRefused = Callable[[Report, str], Any]


class Client:
    """A client of the service for runners. Threads may share it. Close it, or use it in a `with`.

    Args:
        url: The address of the service.
        token: An API token.
        max_reports_in_memory: How many reports may wait.
        on_refused: A function of a refused report and the reason. The sending thread calls it.
        timeout: The seconds to wait for an answer.
        patience: The seconds for which a call is retried.
        close_timeout: The seconds for which `close()` sends waiting reports.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        max_reports_in_memory: int = 10_000,
        on_refused: OnRefused | None = None,
        timeout: float = 10.0,
        patience: float = 30.0,
        close_timeout: float = 10.0,
    ) -> None:
        self._url = _checked(url, token)
        self._max, self._on_refused = max_reports_in_memory, on_refused
        self._patience, self._close_timeout = patience, close_timeout
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._http = httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False)
        #: Guards everything below, and is notified of each change.
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        #: The results of the reports that were removed, and how many are removed when a flush has ended.
        self._counts: Counter[str] = Counter()
        self._flushed = 0
        #: Failed requests in a row, and the reason of the last one; whether a flush has begun since its batch.
        self._failures, self._trouble, self._is_asked = 0, "no request has been made", False
        #: `_closed`: it takes nothing more. `_ended`: it sends nothing more.
        self._process, self._closed, self._ended = os.getpid(), False, False
        threading.Thread(target=self._run, name="harbor-refresh-reports", daemon=True).start()
        atexit.register(self._close_at_exit)

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
        """How many reports of this client the service has applied, left unchanged and refused."""
        return {name: self._counts[name] for name in ("applied", "unchanged", "refused")}

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

        It is created once, even if the request is tried several times. Give a key (of the run, for example) if
        this process may die and another one creates the same execution.
        """
        body = {
            "vendor_type": vendor_type,
            "vendor_id": str(vendor_id) if isinstance(vendor_id, uuid.UUID) else vendor_id,
            "trigger": trigger,
            "extra_attrs": extra_attrs or {},
            "tasks": list(tasks),
        }
        return self._call("POST", "/executions", json=body, headers=_keyed(idempotency_key))

    def add_tasks(
        self, execution_id: int, tasks: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> Sequence[int]:
        """Add tasks to an execution that has not ended, and return their ids."""
        path = f"/executions/{int(execution_id)}/tasks"
        body = {"tasks": list(tasks)}
        return list(self._call("POST", path, json=body, headers=_keyed(idempotency_key))["task_ids"])

    def get(self, execution_id: int) -> Json:
        """Return one execution, with its counts, progress and quarantine."""
        return self._call("GET", f"/executions/{int(execution_id)}")

    def tasks(self, execution_id: int, *, status: Sequence[str] = ()) -> Iterator[Json]:
        """Yield the tasks of an execution, the oldest first; pages are read as they are needed."""
        cursor: str | None = ""
        while cursor is not None:
            params = [("limit", "100"), ("cursor", cursor), *(("status", one) for one in status)]
            page = self._call("GET", f"/executions/{int(execution_id)}/tasks", params=params)
            yield from page["items"]
            cursor = page["next"]

    def wait(self, execution_id: int, timeout: float = math.inf) -> Json:
        """Wait until the execution has ended, and return it. If the service is down, wait until it is back.

        Raises TimedOut. Send your own reports first (`flush`), or the execution does not end.
        """
        end = time.monotonic() + timeout
        pause, seen = 0.1, None
        while True:
            with suppress(Unavailable):
                seen = self._call("GET", f"/executions/{int(execution_id)}", patience=end - time.monotonic())
                if seen["status"] not in ("Pending", "Scheduled", "Running"):
                    return seen
            left = end - time.monotonic()
            if left <= 0:
                raise TimedOut(execution_id, seen)
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, 5.0)

    def _call(self, method: str, path: str, *, patience: float | None = None, **request: Any) -> Json:
        """Ask until there is an answer; raise ApiError for a refusal and Unavailable when the patience is over."""
        self._check_open()
        end = time.monotonic() + (self._patience if patience is None else patience)
        failures = 0
        while True:
            try:
                return self._ask(method, path, **request)
            except Unavailable as exc:
                failures += 1
                pause = _pause(failures, exc.retry_after)
                if time.monotonic() + pause > end:
                    raise
            time.sleep(pause)

    def _ask(self, method: str, path: str, **request: Any) -> Json:
        """Send one request. Raises ApiError for a refusal, Unavailable if the same request may succeed later, and
        Unusable if no request can be made of the arguments.

        An error of httpx2 is no context of it, because such an error refers to the headers of its request.
        """
        response, trouble, body = None, "", None
        try:
            built = self._http.build_request(method, f"{self._url}/api/v1{path}", **request)
        except (TypeError, ValueError, AttributeError, httpx2.InvalidURL) as exc:
            raise Unusable(f"no request can be made of this: {_text_of(exc)}") from None
        try:
            response = self._http.send(built)
        except httpx2.HTTPError as exc:
            trouble = _text_of(exc)
        if response is None:
            raise Unavailable(f"{self._url}: {trouble}")
        with suppress(ValueError, RecursionError):
            body = response.json()
        if response.is_success and isinstance(body, dict):
            return body
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        is_problem = kind == "application/problem+json" and isinstance(body, dict)
        error = ApiError(response.status_code, body if is_problem else None)
        if error.status in (408, 425, 429) or error.status >= 500:
            raise Unavailable(f"{self._url}: {error}", _retry_after(response.headers.get("Retry-After", "")))
        raise error

    def _check_open(self) -> None:
        if self._process != os.getpid():
            raise ClientError("the client belongs to the process that made it: make another one in the child")
        if self._closed:
            raise ClientError("the client is closed")

    def report(
        self, task_id: int, status: str, revision: int = 0, message: str | None = None, earlier_runs: int = 0
    ) -> None:
        """Queue a report. Raises QueueFull if there is no room for it."""
        self.report_many([Report(task_id, status, revision, message, earlier_runs)])

    def report_many(self, reports: Iterable[Report]) -> None:
        """Queue all of these reports; or none, and raise QueueFull."""
        lines = [one.as_line() for one in reports]
        self._check_open()  # a child that was forked must not wait for a lock of its parent
        with self._changed:
            self._check_open()
            if len(self._lines) + len(lines) > self._max:
                raise QueueFull(f"{len(self._lines):,} reports wait in memory, which holds {self._max:,}")
            self._lines.extend(lines)
            self._changed.notify_all()

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until the service has answered for every report that waits now.

        Raises NotSent after `timeout` seconds. The reports stay in the queue.
        """
        self._check_open()
        if not self._flush(timeout):
            raise NotSent(f"reports wait in the queue: {self._trouble}")

    def _flush(self, timeout: float) -> bool:
        with self._changed:
            self._flushed = end = self._counts.total() + len(self._lines)
            self._is_asked = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._counts.total() >= end or self._ended, min(timeout, 1e6))
            return self._counts.total() >= end

    def close(self, timeout: float | None = None) -> None:
        """Send the waiting reports, for `timeout` seconds at most. The rest is lost: NotSent is raised, and its
        `lost` holds the rest."""
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        atexit.unregister(self._close_at_exit)
        try:
            self._flush(self._close_timeout if timeout is None else timeout)
        finally:  # also if a signal interrupts it
            with self._changed:
                self._ended = True
                self._changed.notify_all()
                lost = [Report.from_line(line) for line in self._lines]
            self._http.close()  # a request that still runs fails
        if lost:
            log.error("Lost %d reports that could not be sent in time: %s", len(lost), self._trouble)
            raise NotSent(f"{len(lost):,} reports could not be sent: {self._trouble}", lost)

    def _close_at_exit(self) -> None:
        with suppress(NotSent):  # it was logged
            self.close()

    def _run(self) -> None:
        while not self._ended:
            lines = self._take()
            try:
                if lines:
                    self._post(lines)
            except Exception as exc:  # no usable answer; the reports stay in the queue
                self._fail(exc)

    def _take(self) -> list[bytes]:
        """Wait for a batch: until it is full, for `LINGER`, or until a flush waits for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended)
            self._changed.wait_for(
                lambda: len(self._lines) >= MAX_BATCH or self._counts.total() < self._flushed or self._ended,
                LINGER,
            )
            lines = [] if self._ended else [*islice(self._lines, MAX_BATCH)]
            self._is_asked = False
            return lines

    def _post(self, lines: Sequence[bytes]) -> None:
        """Post the first reports of the queue, and remove them. If they are refused as a whole or too large, each
        half is posted, until the report at fault stands alone. Any other refusal, of the address or the token, is
        raised."""
        try:
            body = self._ask("POST", "/reports", content=b'{"reports":[' + b",".join(lines) + b"]}")
        except ApiError as exc:
            if exc.status != 413 and not (exc.is_problem and exc.status in (400, 422)):
                raise
            if len(lines) == 1:
                return self._remove(lines, [("refused", str(exc))])
            middle = len(lines) // 2
            self._post(lines[:middle])
            return None if self._ended else self._post(lines[middle:])
        try:
            results = [(str(one["result"]), one.get("reason") or "") for one in body["results"]]
            if len(results) != len(lines):
                raise ValueError
        except (LookupError, TypeError, AttributeError, ValueError):
            raise ApiError(200) from None
        return self._remove(lines, results)

    def _remove(self, lines: Sequence[bytes], results: Sequence[tuple[str, str]]) -> None:
        """Remove what the service has answered for, after telling of the refused reports."""
        for line, (result, reason) in zip(lines, results, strict=True):
            if result == "refused":
                self._refuse(Report.from_line(line), reason)
        if self._failures:
            log.info("The service takes reports again, after %d failed requests", self._failures)
        with self._changed:
            self._failures = 0
            self._counts.update(result for result, _ in results)
            for _ in lines:
                self._lines.popleft()
            self._changed.notify_all()

    def _refuse(self, report: Report, reason: str) -> None:
        log.warning("Refused report of task %s: %s", report.task_id, reason)
        try:
            if self._on_refused is not None:
                self._on_refused(report, reason)
        except Exception:
            log.exception("The function on_refused failed")

    def _fail(self, exc: Exception) -> None:
        """Note a failure, and pause. A flush that begins ends the pause, unless the service has asked for it."""
        with self._changed:
            if self._ended:  # and the connection is closed
                return
            self._trouble = _text_of(exc)
            if not self._failures:
                log.warning("The service takes no reports, they wait: %s", self._trouble)
            self._failures += 1
            self._changed.notify_all()
            asked = exc.retry_after if isinstance(exc, Unavailable) else 0.0
            pause = _pause(self._failures, asked)
            self._changed.wait_for(lambda: self._ended or (self._is_asked and not asked), pause)


# The shell


def _create(client: Client, given: argparse.Namespace) -> int:
    found = client.create(
        given.vendor_type,
        vendor_id=given.vendor_id,
        trigger=given.trigger,
        extra_attrs=given.attributes,
        tasks=[{"job_id": one} for one in given.job or ()] or [{}] * given.tasks,
        idempotency_key=given.key,
    )
    _print(given, found, " ".join(map(str, [found["id"], *found["task_ids"]])))
    return 0


def _report(client: Client, given: argparse.Namespace) -> int:
    """Report one task, or the lines of the standard input; then send."""
    if (given.task_id == "-") != (given.status is None):
        raise Unusable("report takes TASK_ID STATUS, or - for the standard input")
    is_usable = True
    if given.status is not None:
        client.report(given.task_id, given.status, given.revision, given.message)
    for number, line in enumerate(sys.stdin.buffer if given.status is None else (), 1):
        try:
            client.report_many([Report.from_line(line)] if line.strip() else [])
        except Unusable as exc:
            is_usable = False
            sys.stderr.write(f"line {number}: {exc}\n")
        if number % MAX_BATCH == 0:  # the input may have more lines than the queue has room for
            client.flush(given.timeout)
    client.flush(given.timeout)
    counts = client.counts
    _print(given, counts, ", ".join(f"{count} {name}" for name, count in counts.items()))
    return 0 if is_usable and not counts["refused"] else 1


def _wait(client: Client, given: argparse.Namespace) -> int:
    found = client.wait(given.id, given.timeout)
    _print(given, found, found["status"])
    return 0 if found["status"] == "Success" else 1


def _show(client: Client, given: argparse.Namespace) -> int:
    found = client.get(given.id)
    _print(given, found, "\n".join(f"{key}: {_shown(value)}" for key, value in found.items()))
    return 0


def _shown(value: Any) -> str:
    """Return text without characters that a terminal would obey."""
    text = value if isinstance(value, str) else json.dumps(value)
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _print(given: argparse.Namespace, data: Any, text: str) -> None:
    sys.stdout.write((json.dumps(data) if given.json else text) + "\n")
    sys.stdout.flush()


def task_id(text: str) -> int | str:
    return text if text == "-" else int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harbor_refresh.client",
        description="Report to Harbor Refresh and ask it. The token is read from HARBOR_REFRESH_TOKEN, or from "
        "the file that HARBOR_REFRESH_TOKEN_FILE names.",
        epilog="exit codes: 0 success, 1 failure, 2 misuse, 3 no answer in time; wait: 0 Success, 1 another end",
    )
    parser.add_argument("--url", default=os.environ.get("HARBOR_REFRESH_URL", ""), help="or HARBOR_REFRESH_URL")
    verbs = parser.add_subparsers(required=True)

    def verb(name: str, act: Callable[[Client, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        one = verbs.add_parser(name, help=text, description=text)
        one.add_argument("--json", action="store_true", help="print JSON")
        one.set_defaults(act=act)
        return one

    create = verb("create", _create, "create an execution; print its id and the ids of its tasks")
    create.add_argument("vendor_type")
    create.add_argument("--vendor-id", default=0, help="a number, or text such as a UUID")
    create.add_argument("--trigger", default="MANUAL")
    create.add_argument(
        "--attributes", type=json.loads, default={}, metavar="JSON", help="the extra_attrs, as a JSON object"
    )
    create.add_argument("--key", help="the Idempotency-Key: requests with the same key create one execution")
    create.add_argument("--tasks", type=int, default=1, metavar="N", help="how many tasks (1)")
    create.add_argument(
        "--job", action="append", metavar="JOB_ID", help="a task with this job id; may be repeated"
    )
    report = verb("report", _report, "report the status of a task, or send one report for each line of JSON")
    report.add_argument(
        "task_id", type=task_id, metavar="TASK_ID", help="the id of the task, or - for standard input"
    )
    report.add_argument("status", nargs="?", metavar="STATUS")
    report.add_argument("--revision", type=int, default=0)
    report.add_argument("--message")
    report.add_argument("--timeout", type=float, default=10.0, help="the seconds to send 1,000 reports (10)")
    wait = verb("wait", _wait, "wait until an execution has ended; print its status")
    wait.add_argument("--timeout", type=float, default=math.inf, help="the seconds to wait (no limit)")
    for one in (wait, verb("show", _show, "show one execution")):
        one.add_argument("id", type=int, metavar="EXECUTION_ID")
    return parser


def _token() -> str:
    if path := os.environ.get("HARBOR_REFRESH_TOKEN_FILE"):
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return os.environ.get("HARBOR_REFRESH_TOKEN", "").strip()


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        with Client(given.url, _token(), close_timeout=0) as client:
            return int(given.act(client, given))
    except (ClientError, OSError) as exc:
        sys.stderr.write(f"error: {exc}\n")
        return {Unusable: 2, NotSent: 3, TimedOut: 3, Unavailable: 3}.get(type(exc), 1)
    except KeyboardInterrupt:
        return 1


if __name__ == "__main__":
    sys.exit(main())
