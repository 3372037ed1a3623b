"""A Harbor whose PostgreSQL and Redis give us what the files of deploy/attach give, and no more."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import psycopg
from redis import Redis

from harbor_refresh.local.redis import EmbeddedRedis
from tests import servers
from tests.harbor.databases import make_harbors_database, manage_attached

FILES = Path(__file__).resolve().parents[2] / "deploy" / "attach"
ROLE = "harbor_refresh"
PASSWORD = "a password of a test"  # it opens a server that lives as long as the test


@dataclass
class Restricted:
    """The addresses with which we come, and clients of the administrators."""

    name: str
    env: dict[str, str]
    database: psycopg.Connection
    redis: Redis
    broker: Redis

    def manage(self, *words: str, **environment: str) -> CompletedProcess[str]:
        return manage_attached(self.name, *words, **{**self.env, **environment})

    def refused(self) -> list[str]:
        """Whatever either Redis has refused: the command or the key, and why."""
        return [
            f"{one['reason']} {one['object']} {one['client-info']}"
            for server in (self.redis, self.broker)
            for one in server.acl_log()
        ]


def run_file(name: str, database: psycopg.Connection) -> None:
    database.execute((FILES / name).read_bytes())


def line_of(file: str) -> str:
    """The line of an ACL file of Redis, with a password."""
    return (FILES / file).read_text().replace("CHANGE-THIS", PASSWORD.replace(" ", "-"))


def login_of(user: str) -> str:
    """What stands before the host in an address."""
    return f"{user}:{PASSWORD.replace(' ', '-')}@"


def knows_setinfo(server: Redis) -> bool:
    """Redis 7.0 does not know this command of the files, so it is left out there, as docs/howto/attach.md says."""
    return not server.info("server")["redis_version"].startswith("7.0.")


def give_rights(file: str, server: Redis) -> str:
    """Make the user of the file; return the user's name."""
    _, user, *rules = line_of(file).split()
    if not knows_setinfo(server):
        rules.remove("+client|setinfo")
    server.execute_command("ACL", "SETUSER", user, *rules)
    return user


def address(server: EmbeddedRedis, user: str) -> str:
    return server.url.replace("redis://", f"redis://{login_of(user)}")


@contextmanager
def restricted_harbor(name: str, directory: Path) -> Iterator[Restricted]:
    """A database of Harbor's with the role of rights.sql, and two Redis with the users of the ACL files."""
    make_harbors_database(name)
    with ExitStack() as stack:
        administrator = psycopg.connect(servers.postgres.url_for(name), autocommit=True)
        stack.callback(_drop, name, administrator)
        run_file("rights.sql", administrator)
        redis, broker = (
            stack.enter_context(EmbeddedRedis(directory / one)) for one in ("harbors_redis", "broker")
        )
        clients = [Redis.from_url(one.url) for one in (redis, broker)]
        users = [give_rights(*one) for one in zip(("redis.acl", "broker.acl"), clients, strict=True)]
        own = servers.postgres.url_for(name).replace("//postgres@", f"//{ROLE}@")
        assert ROLE in own.split("@")[0], own
        env = {
            "DATABASE_URL": own,
            "REDIS_URL": address(redis, users[0]),
            "CELERY_BROKER_URL": address(broker, users[1]),
        }
        yield Restricted(name, env, administrator, *clients)
        for client in clients:
            client.close()


def _drop(name: str, administrator: psycopg.Connection) -> None:
    """Take the rights back by the file that does so, and drop the database."""
    administrator.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'".encode()
    )
    run_file("rights_back.sql", administrator)
    administrator.close()
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
