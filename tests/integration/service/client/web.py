"""The service that a client of the tests reports to, with its token."""

from pathlib import Path

from harbor_refresh.executions.api.access import Scope
from tests.integration.executions.api.api_client import token
from tests.integration.service.web import WebProcess


class Web(WebProcess):
    """Reporting refreshes at once, because no Celery worker runs."""

    def __init__(self, database: str, directory: Path) -> None:
        super().__init__(database, directory / "web.log", EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS="0")
        self.token = token(*Scope, name=f"tests of the client {self.port}")
