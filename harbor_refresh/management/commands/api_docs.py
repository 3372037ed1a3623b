"""`manage.py api_docs`: make docs/api.md anew from the API's description."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.api import api
from harbor_refresh.api_page import renewed
from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer

PAGE = Path(__file__).resolve().parents[3] / "docs/api.md"


class Command(AnswerCommand):
    help = "Write into docs/api.md what the API's description says. It needs no server."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is out of date")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def answer(self, options: dict[str, Any]) -> Answer:
        old = PAGE.read_text(encoding="utf-8")
        new = renewed(old, api.get_openapi_schema())
        is_current = old == new
        if not (is_current or options["check"]):
            PAGE.write_text(new, encoding="utf-8")
        told = "is up to date" if is_current else "is out of date" if options["check"] else "was written"
        failure = "" if is_current or not options["check"] else "Type: manage.py api_docs"
        return Answer({"page": "docs/api.md", "current": is_current}, [f"docs/api.md {told}."], failure)
