"""API tokens: made, recognised and revoked."""

import hashlib
import secrets
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models import ApiToken

PREFIX = "hr_"
#: The characters of a token: the prefix and 256 random bits.
LENGTH = len(PREFIX) + 43
SHOWN = 8
#: The time of the last use is written at most this often, so that a busy token costs no write a request.
NOTED_EVERY = timedelta(minutes=1)


class Scope(StrEnum):
    """What a token allows."""

    READ = "read"
    REPORT = "report"
    MANAGE = "manage"


def make(
    name: str,
    *,
    read: bool = True,
    report: bool = False,
    manage: bool = False,
    expires_at: datetime | None = None,
    created_by: str = "",
) -> tuple[ApiToken, str]:
    """Make a token. Returns its row, and the token itself, which is shown once and not stored."""
    row = ApiToken(name=name, may_read=read, may_report=report, may_manage=manage, expires_at=expires_at)
    token = fill(row, created_by=created_by)
    row.save()
    return row, token


def fill(row: ApiToken, *, created_by: str) -> str:
    """Put what is stored of a new token into its row, which is not saved here. Returns the token."""
    token = PREFIX + secrets.token_urlsafe(32)
    row.digest, row.hint, row.created_by = _digest(token), token[:SHOWN], created_by
    return token


def recognise(token: str) -> ApiToken | None:
    """Find the row of a token that is neither revoked nor expired, by the database's clock.

    The index compares digests. How long that takes tells nothing of the token, because a caller cannot choose the
    digest of what it sends.
    """
    if len(token) != LENGTH or not token.startswith(PREFIX):
        return None
    live = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=Now()))
    row = ApiToken.objects.filter(live, digest=_digest(token)).annotate(now=Now()).first()
    if row and (row.last_used_at is None or row.last_used_at < row.now - NOTED_EVERY):
        unnoted = Q(last_used_at=None) | Q(last_used_at__lt=Now() - NOTED_EVERY)
        ApiToken.objects.filter(unnoted, pk=row.pk).update(last_used_at=Now())
    return row


def revoke(token_id: int) -> bool:
    """Revoke the token. False if it was revoked before, or is gone."""
    return bool(ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=Now()))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
