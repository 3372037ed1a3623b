"""docs/start/service.md: what a person types makes a status right, also after a worker was killed."""

import re
import subprocess
from pathlib import Path

import pytest

from tests import pages
from tests.acceptance.test_make import checkout, environment, typed, up  # noqa: F401  # two are fixtures
from tests.faults.cluster import Member
from tests.waiting import wait_for

PAGE = pages.read("docs/start/service.md")
REPORT, KILL = (pages.section(PAGE, title) for title in ("Report a batch", "Kill a worker"))


def reported(address: str, name: str, folder: Path) -> str:
    """Type the blocks into one shell, with this name of the token; return the last line that they print."""
    script = "".join(pages.codes(REPORT, "sh"))
    for before, now in {"http://127.0.0.1:8000": address, "laptop": name}.items():
        assert before in script
        script = script.replace(before, now)
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_person_reports_a_batch_and_another_after_a_worker_was_killed(checkout: Path, up: Member) -> None:  # noqa: F811
    wait_for(lambda: up.died() or "Ctrl-C ends everything" in up.text(), "the addresses", log=up.log)
    (address,) = set(re.findall(r"http://\S+(?=/admin/)", up.text()))
    assert reported(address, "laptop", checkout) == "Success"
    look, kill = pages.lines(KILL)
    node, pid = re.findall(r"([\w.-]+-(\d+)-[0-9a-f]+)", typed(look, checkout))[0]
    typed(kill.replace("PID", pid), checkout)
    died = f"The last heartbeat of {node} came"
    wait_for(lambda: died in " ".join(typed(look, checkout).split()), "the node to count as dead", log=up.log)
    assert reported(address, "another", checkout) == "Success"
