"""What a page of the admin costs the database."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harbor_refresh.dashboard import badges


def queries(client: Client, address: str) -> int:
    """Count the queries of a page, with those that the sidebar makes once in a while."""
    badges.COUNTS.forget()
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)
