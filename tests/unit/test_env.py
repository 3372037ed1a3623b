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
    "flag": lambda: env.value(NAME, "flag", True),
    "integer": lambda: env.value(NAME, "integer", 5, at_least=1, at_most=2000),
    "seconds": lambda: env.value(NAME, "number", 30, at_least=0.1),
    "auto_or_integer": lambda: env.value(NAME, "auto_or_integer", None, at_least=1, at_most=2000),
    "optional_integer": lambda: env.value(NAME, "integer", None, at_least=0, at_most=9),
    "words": lambda: env.words(NAME, "a,b"),
    "one_of_lower": lambda: env.value(NAME, "one_of", "claim", choices=("claim", "scan")),
    "one_of": lambda: env.value(NAME, "one_of", "INFO", choices=("INFO", "DEBUG")),
    "secret": lambda: env.secret(NAME, "s"),
    "redis_url": lambda: env.redis_url(NAME, default="redis://default"),
    "broker_url": lambda: env.broker_url(NAME, default="redis://default"),
    "counts": lambda: env.value(NAME, "counts", {"A": 1}, at_least=1, at_most=2000),
}
DEFAULTS = {
    "text": "d",
    "flag": True,
    "integer": 5,
    "seconds": 30,
    "auto_or_integer": None,
    "optional_integer": None,
    "one_of_lower": "claim",
    "words": ["a", "b"],
    "one_of": "INFO",
    "secret": "s",
    "redis_url": "redis://default",
    "broker_url": "redis://default",
    "counts": {"A": 1},
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("value", [None, "", "   "])
def test_a_variable_that_is_not_set_or_blank_has_its_default(
    reader: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv(NAME, value)
    assert READERS[reader]() == DEFAULTS[reader]


@pytest.mark.parametrize(
    ("reader", "raw", "value"),
    [
        ("text", " x y ", "x y"),
        ("flag", "true", True),
        ("flag", " on ", True),
        ("flag", "0", False),
        ("flag", "off", False),
        ("integer", " 2000 ", 2000),
        ("seconds", "1e3", 1000.0),
        ("auto_or_integer", "auto", None),
        ("words", " a , ,b,", ["a", "b"]),
        ("one_of_lower", " Scan ", "scan"),
        ("optional_integer", "0", 0),
        ("optional_integer", " 9 ", 9),
        ("secret", " hunter2 ", "hunter2"),
        ("counts", "A:3, B_C:2000,,*:7", {"A": 3, "B_C": 2000, "*": 7}),
        ("redis_url", "redis://h:1/0", "redis://h:1/0"),
        ("redis_url", "rediss://:p@h/1", "rediss://:p@h/1"),
        ("redis_url", "redis://[::1]:6379/0", "redis://[::1]:6379/0"),
    ],
)
def test_a_good_value_is_taken(reader: str, raw: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, raw)
    assert READERS[reader]() == value


URL = f"{redis_address.TAKES}; this has "
HOST = f"{URL}a host that cannot be read"


@pytest.mark.parametrize(
    ("reader", "raw", "takes"),
    [
        ("flag", "maybe", "one of 0, 1, false, no, off, on, true, yes"),
        ("integer", "2001", "a whole number from 1 to 2,000"),
        ("seconds", "soon", "a number from 0.1 to 31,536,000"),
        ("auto_or_integer", "automatic", "'auto' or a whole number from 1 to 2,000"),
        ("one_of", "loud", "one of INFO, DEBUG"),
        ("optional_integer", "10", "a whole number from 0 to 9"),
        ("counts", "A", "NAME:N separated by commas, N from 1 to 2,000"),
        ("redis_url", "localhost:6379", f"{URL}the scheme localhost"),
        ("redis_url", "http://h:1", f"{URL}the scheme http"),
        ("redis_url", "redis://", HOST),
        ("redis_url", "amqp://h", f"{URL}the scheme amqp"),
        ("redis_url", "redis://[::1", redis_address.TAKES),
        ("redis_url", "redis://h:port/0", HOST),
        ("redis_url", "redis://h:99999/0", HOST),
        ("redis_url", "redis://h:1/zero", f"{URL}a database that is no number"),
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
    "url",
    [
        "http://user:s3cret@h:1/0",
        "redis://user:s3cret@",
        "redis://user:s3@cret@:1",
        "redis://:s3cret@h:port/0",
        "amqp://h?password=s3cret",
        "h:1?password=s3cret",
        "redis://:s3cret@[::1",
        "s3cret@h",
    ],
)
def test_the_password_of_a_bad_redis_url_is_never_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, url)
    message = refused(READERS["redis_url"])
    assert message.startswith(f"{NAME}: got ")
    assert "cret" not in message


@pytest.mark.parametrize(
    "url",
    [
        "http://user:s3cret@h:1/0",
        "amqp://user:s3#cret@h",
        "amqp://user:s3cret@h:port",
        "amqp://user:s3cret@h;amqp://user:s3cret",
        "amqp://h?password=s3cret",
        "amqps://user:s3cret@h?ssl_ca_certs=none",
        "amqp://:s3cret@h",
    ],
)
def test_the_password_of_a_bad_broker_url_is_never_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, url)
    message = refused(READERS["broker_url"])
    assert message.startswith(f"{NAME}: got ")
    assert "cret" not in message


def test_the_first_name_that_is_set_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    read = lambda: env.redis_url(NAME, f"{NAME}_2", default="redis://d")  # noqa: E731
    monkeypatch.setenv(f"{NAME}_2", "redis://second")
    assert read() == "redis://second"
    monkeypatch.setenv(NAME, "redis://first")
    assert read() == "redis://first"


def test_a_bad_address_is_reported_under_the_name_it_came_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"{NAME}_2", "x")
    message = refused(lambda: env.redis_url(NAME, f"{NAME}_2", default="redis://d"))
    assert message.startswith(f"{NAME}_2: got 'x'")


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


def test_a_database_url_that_is_not_set_has_its_default() -> None:
    assert env.database(NAME, "postgresql://h/n")["HOST"] == "h"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:s3cret@h/n",
        "sqlite:///db?password=s3cret",
        "u:s3cret@h",
        "postgresql://u:s3cret@h/n?nonsense=1",
        "postgresql://h/n?password=s3cret&nonsense=1",
        "host=h password=s3cret dbname=n",
        "host=h password='s3cret' dbname=n",
        "postgresql://u:s3cret@[::1/n",
        "postgresql://u:s3cret@h:port/n",
        "postgresql://u:s3cret@h:5432",
        "postgresql://u:s3cret@h:5432/",
    ],
)
def test_a_bad_database_url_gives_one_line_without_its_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, url)
    message = refused(lambda: env.database(NAME, "postgresql://h/n"))
    assert message.startswith(f"{NAME}: got ")
    assert "takes postgresql://user:password@host:port/name." in message
    assert "s3cret" not in message


GOOD = "whsec_" + "A" * 32  # 24 bytes


@pytest.mark.parametrize("value", ["", GOOD, f"{GOOD},{GOOD}", f" {GOOD} , {GOOD} ,"])
def test_signing_secrets_are_one_or_two(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    assert env.value(NAME, "signing_secrets", "") == ",".join(
        one.strip() for one in value.split(",") if one.strip()
    )


@pytest.mark.parametrize(
    "value",
    [",".join([GOOD] * 3), "whsec_" + "A" * 28, "A" * 32, "whsec_" + "A" * 31, "whsec_é", "whsec_" + "A" * 88],
)
def test_signing_secrets_that_cannot_be_used_are_refused_and_not_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, value)
    message = refused(lambda: env.value(NAME, "signing_secrets", ""))
    assert message.startswith(f"{NAME}: got something else, takes one secret or two")
    assert "AAAA" not in message


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


def test_packages_that_a_variable_asks_for_are_installed_or_the_program_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFRESH_TRACES", "yes")
    env.refuse_missing_packages("REFRESH_TRACES", ("json.decoder",), "requirements-traces.txt")
    with pytest.raises(env.BadSetting) as told:
        env.refuse_missing_packages("REFRESH_TRACES", ("json", "no_such.package"), "requirements-traces.txt")
    assert str(told.value) == (
        "REFRESH_TRACES: got 'yes', takes the packages of requirements-traces.txt, "
        "and no_such.package is missing. Install them, or remove REFRESH_TRACES."
    )
