"""Make an API token and print it. It is not stored, so it cannot be printed again."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from harbor_refresh.executions.access import api_tokens
from harbor_refresh.executions.access.api_tokens import Scope
from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, noted
from harbor_refresh.executions.management.command import Subcommand, count
from harbor_refresh.executions.management.output import Answer, Failed, Misused
from harbor_refresh.executions.models import ApiToken
from harbor_refresh.executions.text import is_text, shown

MAX_NAME = ApiToken._meta.get_field("name").max_length or 0


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("name", help="a unique name that says what uses the token")
    parser.add_argument(
        "--may",
        action="append",
        choices=[scope.value for scope in Scope],
        help="a scope; may be repeated (default: read)",
    )
    parser.add_argument("--days", type=count(1, 3_650), help="expire after this many days (default: never)")


def _token(options: dict[str, Any]) -> Answer:
    name, days, may = options["name"], options["days"], sorted(options["may"] or [Scope.READ.value])
    if not is_text(name, MAX_NAME, at_least=1):
        raise Misused(f"the name takes 1 to {MAX_NAME} characters, and got {shown(name)}")
    if ApiToken.objects.filter(name=name).exists():
        raise Failed(f"There is a token named {shown(name)} already. Choose another name.")
    expires_at = timezone.now() + timedelta(days=days) if days else None
    scopes = {scope.value: scope.value in may for scope in Scope}
    with noted(at_terminal(), Word.CREATE, Kind.TOKEN) as entry:
        row, token = api_tokens.make(name, **scopes, expires_at=expires_at, created_by="manage.py")
        entry.target, entry.detail = row.pk, f"{name}: {', '.join(may)}"
    return Answer({"id": row.pk, "name": name, "token": token, "may": may, "expires_at": expires_at}, [token])


TOKEN = Subcommand("create an API token and print it once", _token, _arguments)
