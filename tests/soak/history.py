"""All that is known of one job, in order of time, for the analysis of a violation."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.soak.evidence import Diary, Evidence

STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) ")
#: The entries of the diary that are shown besides the job's own lines: what was done to servers and workers.
TOLD = (
    "fault",
    "asked",
    "ended by itself",
    *(f"worker {what}" for what in ("started", "killed", "terminated", "frozen")),
)
SKIPPED = ("at", "what", "log", "since", "until")
BEFORE, AFTER = 3.0, 10.0


def history(job: str, evidence: Evidence, diary: Diary, logs: Iterable[Path]) -> list[str]:
    changes = [one for one in evidence.changes if one.job == job]
    executions = {one.execution for one in changes}
    lines: list[tuple[float, str]] = []
    for change in changes:
        who = "the traffic" if change.is_ours else "a worker"
        what = f"task {change.task} of execution {change.execution} is {change.status}, revision {change.revision}"
        lines.append((change.at, f'database  {what}, runs {change.runs}, by {who}: "{change.message}"'))
    for run in (one for one in evidence.runs if one.job == job):
        who = f"{run.kind} in process {run.pid} of worker {run.worker}, revision {run.revision}"
        lines.append((run.began, f"run       begins: {who} {run.said or ''}"))
        if run.ended is not None:
            lines.append((run.ended, f"run       ends: {who}: {run.outcome}"))
        else:
            lines.append((run.until, f"run       seen alive for the last time, no end was written: {who}"))
    paths = [path for path in logs if path.stat().st_size]
    lines += [(at, f"{path.stem:10} {text}") for path in paths for at, text in _log_lines(path, job)]
    first = min((at for at, _ in lines), default=0.0) - BEFORE
    last = max((at for at, _ in lines), default=0.0) + AFTER
    for line in diary.lines:
        if line["what"] not in TOLD or not first <= line["at"] <= last:
            continue
        if line["what"] == "asked" and line["execution"] not in executions:
            continue
        words = ", ".join(f"{name} {value}" for name, value in line.items() if name not in SKIPPED)
        since = f" (began {line['at'] - line['since']:.1f} s earlier)" if "since" in line else ""
        lines.append((line["at"], f"done      {line['what']}: {words}{since}"))
    return [f"{at - first:8.3f} {time_of(at)} {text}" for at, text in sorted(lines)]


def _log_lines(path: Path, job: str) -> Iterable[tuple[float, str]]:
    for line in path.read_text(errors="replace").splitlines():
        if job in line and (stamp := STAMP.match(line)):
            at = datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
            yield at.timestamp() + int(stamp[2]) / 1000, line[stamp.end() :]


def time_of(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
