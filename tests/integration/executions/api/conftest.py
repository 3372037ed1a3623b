import pytest

from harbor_refresh.executions.api.access import Scope
from tests.integration.executions.api.api_client import Program, token


@pytest.fixture
def program(database: str) -> Program:
    """A program that may do everything."""
    return Program(token(*Scope))
