"""The schema `public` as pg_dump writes it, to compare it to the letter."""

import re

from harbor_refresh.local.postgres import find_postgres
from tests import servers
from tests.terminal import ran


def dump_of_public(database: str) -> str:
    """What `pg_dump --schema-only` says of Harbor's schema. The program is the one beside the server."""
    done = ran(
        [find_postgres() / "pg_dump", "--schema-only", "--schema=public", servers.postgres.url_for(database)]
    )
    assert done.returncode == 0, done.stderr
    # a word that pg_dump makes up each time
    return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)
