"""What tests of several rooms ask for: a client of the admin."""

import pytest
from django.test import Client

from tests.integration.admin_client import signed_in


@pytest.fixture
def admin(database: str) -> Client:
    return signed_in(superuser=True)
