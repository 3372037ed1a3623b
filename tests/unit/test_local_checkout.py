"""What `make up` keeps in the checkout."""

from pathlib import Path

from harbor_refresh.local.checkout import LARGEST_LOG, Checkout


def test_the_secret_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.prepare()

    key = checkout.secret_key()

    assert len(key) > 50
    assert checkout.secret_key() == key
    assert (checkout.local / "secret_key").stat().st_mode & 0o077 == 0


def test_an_empty_secret_key_file_is_filled_again(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.prepare()
    (checkout.local / "secret_key").touch()

    assert checkout.secret_key() == checkout.secret_key() != ""


def test_only_its_owner_can_enter_the_local_directory(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.prepare()

    assert checkout.local.stat().st_mode & 0o077 == 0


def test_a_fresh_log_keeps_the_previous_one_beside_it(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.prepare()
    log = checkout.fresh_log("web")
    log.write_text("first run")

    checkout.fresh_log("web")

    assert log.read_text() == ""
    assert (checkout.logs / "web.log.1").read_text() == "first run"


def test_a_log_that_is_too_large_is_truncated_while_its_writer_goes_on(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.prepare()
    log = checkout.logs / "worker1.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * (LARGEST_LOG + 1))
        checkout.bound_logs()
        writer.write(b"goes on")

    assert log.read_bytes() == b"goes on"
    assert (checkout.logs / "worker1.log.1").stat().st_size == LARGEST_LOG + 1
