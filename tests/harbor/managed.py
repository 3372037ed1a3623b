"""The PostgreSQL of a cloud service, as far as roles go: its customers get no superuser."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests import servers

ADMINISTRATOR = "administrator"
HARBORS_ROLE = "harbor"
#: What the service itself does, as a superuser. RDS has the role `rds_superuser`, Cloud SQL `cloudsqlsuperuser`;
#: their members may make roles and databases, and grant the roles of PostgreSQL that the service has left to them.
OF_THE_SERVICE = f"""
    CREATE ROLE cloud_superuser;
    GRANT %s TO cloud_superuser WITH ADMIN OPTION;
    CREATE ROLE {ADMINISTRATOR} LOGIN CREATEROLE CREATEDB;
    GRANT cloud_superuser TO {ADMINISTRATOR};
"""
#: What its customer does. The last statement is of docs/howto/attach.md, step 2.
OF_THE_CUSTOMER = f"CREATE ROLE {HARBORS_ROLE} LOGIN; GRANT {HARBORS_ROLE} TO CURRENT_USER;"


@contextmanager
def managed(database: str, may_grant: str = "pg_monitor") -> Iterator[str]:
    """Give this Harbor's database to an administrator without a superuser's rights, and its tables to a role of
    Harbor's own. Return the administrator's address.

    Before PostgreSQL 16 every role with CREATEROLE may grant every role. Since then, only those in `may_grant` and
    those that it has made.
    """
    owner = servers.postgres.url_for(database)
    address = owner.replace("//postgres@", f"//{ADMINISTRATOR}@")
    with psycopg.connect(owner, autocommit=True) as service:
        service.execute((OF_THE_SERVICE % may_grant).encode())
        service.execute(f"ALTER DATABASE {database} OWNER TO {ADMINISTRATOR}".encode())
        with psycopg.connect(address, autocommit=True) as customer:
            customer.execute(OF_THE_CUSTOMER.encode())
        for table in ("execution", "task", "schema_migrations"):
            service.execute(f"ALTER TABLE public.{table} OWNER TO {HARBORS_ROLE}".encode())
    try:
        yield address
    finally:
        with psycopg.connect(owner, autocommit=True) as service:
            roles = (HARBORS_ROLE, ADMINISTRATOR, "cloud_superuser")
            for role in roles:
                service.execute(f"REASSIGN OWNED BY {role} TO postgres; DROP OWNED BY {role}".encode())
            service.execute(f"DROP ROLE {', '.join(roles)}".encode())
