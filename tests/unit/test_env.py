"""The readers of the environment: the values that each accepts, and the line that refuses other values."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harbor_refresh.tasks.broker import redis_address
from settings import env

NAME = "SOME_VARIABLE"
Reader = Callable[[], Any]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(NAME):
            monkeypatch.delenv(name)


def refused(read: Reader) -> str:
    """The message: one line, as the interpreter prints it for a SystemExit."""
    with pytest.raises(SystemExit) as caught:
        read()
    message = str(caught.value)
    assert caught.value.code == message
    assert "\n" not in message
    return message


READERS: dict[str, Reader] = {
    "text": lambda: env.text(NAME, "d"),
    "integer": lambda: env.value(NAME, "integer", 5, at_least=1, at_most=2000),
    "words": lambda: env.words(NAME, "a,b"),
    "secret": lambda: env.secret(NAME, "s"),
    "redis_url": lambda: env.redis_url(NAME, default="redis://default"),
    "broker_url": lambda: env.broker_url(NAME, default="redis://default"),
    "counts": lambda: env.value(NAME, "counts", {"A": 1}, at_least=1, at_most=2000),
}


@pytest.mark.parametrize(
    ("reader", "raw", "value"),
    [
        ("text", "   ", "d"),
        ("text", " x y ", "x y"),
        ("integer", "", 5),
        ("integer", " 2000 ", 2000),
        ("words", "", ["a", "b"]),
        ("words", " a , ,b,", ["a", "b"]),
        ("secret", " hunter2 ", "hunter2"),
        ("counts", "A:3, B_C:2000,,*:7", {"A": 3, "B_C": 2000, "*": 7}),
        ("broker_url", "", "redis://default"),
        ("redis_url", "rediss://:p@h/1", "rediss://:p@h/1"),
    ],
)
def test_a_good_value_is_taken_and_a_blank_one_has_its_default(
    reader: str, raw: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, raw)
    assert READERS[reader]() == value


@pytest.mark.parametrize(
    ("reader", "raw", "takes"),
    [
        ("integer", "2001", "a whole number from 1 to 2,000"),
        ("counts", "A", "NAME:N separated by commas, N from 1 to 2,000"),
        ("redis_url", "redis://[::1", f"{redis_address.TAKES}; this has a host that cannot be read"),
        ("redis_url", "redis://h/0/1", f"{redis_address.TAKES}; this has a path that is too long"),
    ],
)
def test_a_bad_value_gives_one_line_with_its_name_the_value_and_what_is_accepted(
    reader: str, raw: str, takes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, raw)
    assert refused(READERS[reader]) == (f"{NAME}: got {raw!r}, takes {takes}. Correct it and start again.")


def test_a_value_of_many_lines_is_shown_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "a\nb\r\nc")
    assert r"got 'a\nb\r\nc'" in refused(READERS["integer"])


# secrets


def test_a_secret_without_a_default_is_required() -> None:
    message = refused(lambda: env.secret(NAME))
    assert message == f"{NAME}: got nothing, takes a secret. Set {NAME} or {NAME}_FILE."


def test_a_secret_may_be_in_a_file_which_takes_precedence_over_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("from the file\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(file))
    monkeypatch.setenv(NAME, "from the variable")
    assert env.secret(NAME) == "from the file"
    file.write_text("redis://h:5/1\n")
    assert env.redis_url(NAME, default="x") == "redis://h:5/1"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe\x00", "directory"])
def test_a_file_without_a_secret_gives_one_line(
    content: bytes | str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content:
        file.mkdir()
    monkeypatch.setenv(f"{NAME}_FILE", str(file))
    message = refused(lambda: env.secret(NAME))
    assert message.startswith(f"{NAME}_FILE: got {str(file)!r}, takes the path of a ")


# addresses with passwords


@pytest.mark.parametrize(
    ("reader", "url"),
    [
        ("redis_url", "http://user:s3cret@h:1/0"),
        ("redis_url", "redis://user:s3@cret@:1"),
        ("redis_url", "redis://:s3cret@h:port/0"),
        ("redis_url", "h:1?password=s3cret"),
        ("redis_url", "redis://:s3cret@[::1"),
        ("redis_url", "s3cret@h"),
        ("broker_url", "amqp://user:s3#cret@h"),
        ("broker_url", "amqp://user:s3cret@h;amqp://user:s3cret"),
        ("broker_url", "amqp://h?password=s3cret"),
        ("broker_url", "amqps://user:s3cret@h?ssl_ca_certs=none"),
    ],
)
def test_the_password_of_a_bad_url_is_never_shown(reader: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, url)
    message = refused(READERS[reader])
    assert message.startswith(f"{NAME}: got ")
    assert "cret" not in message


def test_the_first_name_that_is_set_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    read = lambda: env.redis_url(NAME, f"{NAME}_2", default="redis://d")  # noqa: E731
    monkeypatch.setenv(f"{NAME}_2", "redis://second")
    assert read() == "redis://second"
    monkeypatch.setenv(NAME, "redis://first")
    assert read() == "redis://first"


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql://u:p@h:5433/n", ("n", "u", "p", "h", "5433", {})),
        ("postgres://h/n", ("n", "", "", "h", "", {})),
        ("postgresql:///n", ("n", "", "", "", "", {})),
        ("postgresql://u:p%40ss%2F@h/n", ("n", "u", "p@ss/", "h", "", {})),
        ("postgresql://h/n?sslmode=require", ("n", "", "", "h", "", {"sslmode": "require"})),
        ("postgresql://[::1]:5/n", ("n", "", "", "::1", "5", {})),
    ],
)
def test_a_database_is_read_from_its_url(
    url: str, parts: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, url)
    found = env.database(NAME, "postgresql://d/d")
    assert found.pop("ENGINE") == "django.db.backends.postgresql"
    assert tuple(found[k] for k in ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")) == parts


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:s3cret@h/n",
        "u:s3cret@h",
        "postgresql://h/n?password=s3cret&nonsense=1",
        "host=h password='s3cret' dbname=n",
        "postgresql://u:s3cret@[::1/n",
        "postgresql://u:s3cret@h:port/n",
        "postgresql://u:s3cret@h:5432/",
    ],
)
def test_a_bad_database_url_gives_one_line_without_its_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, url)
    message = refused(lambda: env.database(NAME, "postgresql://h/n"))
    assert message.startswith(f"{NAME}: got ")
    assert "takes postgresql://user:password@host:port/name." in message
    assert "s3cret" not in message


@pytest.mark.parametrize("value", ["changeme", "letmein", "Not-A-Secure-String", "x" * 40, "fifteen-letters"])
def test_a_secret_that_can_be_guessed_is_refused_and_not_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, value)
    message = refused(lambda: env.refuse_known_secret(NAME))
    assert message.startswith(f"{NAME}: got a secret that can be guessed, takes a random secret of at least 16")
    assert value not in message


@pytest.mark.parametrize("value", ["", "   "])
def test_a_secret_that_is_set_and_empty_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    assert refused(lambda: env.refuse_known_secret(NAME)).startswith(f"{NAME}: got an empty value, takes a random")


def test_a_random_secret_and_one_that_is_not_set_are_not_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    env.refuse_known_secret(NAME)
    monkeypatch.setenv(NAME, "9f1c2e7a4b6d8035")
    env.refuse_known_secret(NAME)
    (tmp_path / "secret").write_text("9f1c2e7a4b6d8035\n")
    monkeypatch.setenv(NAME, "")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    env.refuse_known_secret(NAME)


def test_a_variable_for_one_name_has_precedence_over_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Harbor spells them: IMAGE_SCAN_EXECUTION_RETENTION_COUNT."""
    monkeypatch.setenv(NAME, "A:1,B:2")
    monkeypatch.setenv("B_VARIABLE", "5")
    monkeypatch.setenv("P2P_C_VARIABLE", " 6 ")
    monkeypatch.setenv("D_VARIABLE", "")
    assert READERS["counts"]() == {"A": 1, "B": 5, "P2P_C": 6}
    monkeypatch.setenv("B_VARIABLE", "many")
    assert "B_VARIABLE: got 'many', takes a whole number from 1 to 2,000" in refused(READERS["counts"])
