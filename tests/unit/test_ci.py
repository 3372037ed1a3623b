"""The workflow of GitHub installs the programs that the tests need. There a test without its program fails."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
JOBS: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
SERVERS = (ROOT / ".ci/servers").read_text(encoding="utf-8")
#: GitHub's image of Ubuntu has these.
OF_THE_IMAGE = {"openssl", "chromium", "go"}


def test_the_script_installs_every_package_and_leaves_no_service_running() -> None:
    needed = {PACKAGES[program].split()[0] for program in PACKAGES.keys() - OF_THE_IMAGE}
    (services,) = re.findall(r"^servers=\((.+)\)$", SERVERS, re.MULTILINE)
    (packages,) = re.findall(r"apt-get install .*--no-install-recommends (.+)$", SERVERS, re.MULTILINE)
    assert set(packages.replace('"${servers[@]}"', services).split()) == needed
    assert 'systemctl disable --now "${servers[@]}"' in SERVERS


@pytest.mark.parametrize("job", sorted(JOBS))
def test_each_job_has_the_programs_before_it_runs_the_tests(job: str) -> None:
    steps = [one.get("run") or one["uses"].partition("@")[0] for one in JOBS[job]["steps"]]
    assert steps[-3:-1] == ["azure/setup-kubectl", ".ci/servers"]
    assert re.match(r"\.ci/run$|make test-matrix ", steps[-1])
