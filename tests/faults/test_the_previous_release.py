"""Workers of the previous release run beside those of this one, and what dies on either side loses nothing.

The previous release is the newest tag before this commit. As long as there is no tag, this commit stands in for
it. Then two checkouts of one release run side by side, which tries the way and proves nothing about a change of
formats. The output of the test says which it was. Meanwhile a golden file pins the formats.
"""

import subprocess
import tarfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults.cluster import ROOT, Cluster
from tests.faults.conftest import many, succeed
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True).stdout


def previous_release() -> str:
    """The newest tag of a release before this commit; `HEAD` if there is none."""
    here = set(git("tag", "--points-at", "HEAD").decode().split())
    tags = git("tag", "--merged", "HEAD", "--sort=-version:refname", "v*").decode().split()
    return next((tag for tag in tags if tag not in here), "HEAD")


@pytest.fixture
def previous(cluster: Cluster, database: str, tmp_path: Path) -> Iterator[Cluster]:
    if not (ROOT / ".git").exists():
        pytest.skip("no repository here, so there is no previous release to run")
    release = previous_release()
    stand_in = "; no tag yet, so this commit stands in for it" if release == "HEAD" else ""
    print(f"previous release: {release}{stand_in}")  # noqa: T201
    checkout = tmp_path / "previous"
    with tarfile.open(fileobj=BytesIO(git("archive", release))) as archive:
        archive.extractall(checkout, filter="data")
    logs = tmp_path / "logs of the previous release"
    logs.mkdir()
    old = Cluster(database, logs, checkout)
    yield old
    old.end()


@pytest.mark.parametrize("dies", ["the old one", "the new one"])
def test_workers_of_two_releases_share_the_work_and_either_takes_over_what_the_other_leaves(  # noqa: PLR0917
    dies: str,
    previous: Cluster,
    cluster: Cluster,
    redis: Redis,
    holds: Callable[..., None],
    log: Path,
    tmp_path: Path,
) -> None:
    """The victim dies with claims that it has taken and not published; jobs wait, run and end meanwhile."""
    env = {"JOBS_LOG": str(log)}
    include = ["tests.faults.jobs"]
    victims, heirs = (previous, cluster) if dies == "the old one" else (cluster, previous)
    plan = {"point": "claimed", "act": "kill_group", "once": str(tmp_path / "acted")}
    victim = victims.worker("victim", sabotage=plan, include=include, **env)
    ids = many(300)
    succeed(ids[:100])
    wait_for(victim.died, "the victim to die with a claim", log=victim.log)
    heirs.worker("heir", include=include, **env)
    victims.worker("successor", include=include, **env)
    heirs.beat()
    execution = start("SCAN", jobs=[team.copy.s(str(number), 0.1) for number in range(40)])
    succeed(ids[100:])
    holds()
    assert set(Execution.objects.filter(pk__in=ids).values_list("status", flat=True)) == {"Success"}
    assert Execution.objects.get(pk=execution.id).status == "Success"
    assert sorted(log.read_text().split("\n")) == sorted([*(f"copy {number}" for number in range(40)), ""])
    assert "cannot be read" not in previous.logs() + cluster.logs()
