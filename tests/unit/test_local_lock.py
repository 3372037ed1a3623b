"""The lock that allows one `make up` a checkout."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.lock import held, holder

ADDRESS = "http://127.0.0.1:8001/admin/"


def test_a_second_holder_learns_where_the_first_runs(tmp_path: Path) -> None:
    path = tmp_path / "up.lock"
    with held(path) as announce:
        announce(ADDRESS, {"DATABASE_URL": "postgresql://db"})
        with pytest.raises(LocalError, match=ADDRESS), held(path):
            pass


def test_a_second_holder_learns_that_the_first_is_still_starting(tmp_path: Path) -> None:
    path = tmp_path / "up.lock"
    with held(path), pytest.raises(LocalError, match="still starting"), held(path):
        pass


def test_a_released_lock_can_be_taken_again_and_has_no_holder(tmp_path: Path) -> None:
    path = tmp_path / "up.lock"
    with held(path):
        assert holder(path) is not None

    assert holder(path) is None
    with held(path):
        assert holder(path) is not None


def test_a_checkout_that_never_ran_has_no_holder(tmp_path: Path) -> None:
    assert holder(tmp_path / "up.lock") is None


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "up.lock"
    program = textwrap.dedent(
        f"""
        import os, pathlib, signal
        from harbor_refresh.local.lock import held
        with held(pathlib.Path({str(path)!r})):
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", program], check=False)

    assert holder(path) is None
    with held(path):
        assert holder(path) is not None
    assert holder(path) is None


def test_only_its_owner_can_read_the_lock_file(tmp_path: Path) -> None:
    with held(tmp_path / "up.lock"):
        assert (tmp_path / "up.lock").stat().st_mode & 0o077 == 0
