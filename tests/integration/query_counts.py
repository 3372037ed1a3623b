"""What a page of the admin costs the database."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)
