"""Who may report to the hook: a signed message, Harbor's own secret, or an API token with the scope `report`."""

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.problems import unauthorized
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.signatures import SignedMessage, is_signed, verify

SCHEME = "Harbor-Secret"
TAKES = f"takes a signature, `Authorization: {SCHEME} SECRET` or `Authorization: Bearer TOKEN`"


def may_report(request: HttpRequest) -> SignedMessage | None:
    """Return the message if the request is signed; raise Problem or BadSignature if it may not report.

    The hook is never open: without a secret, signing secrets and tokens every request is refused.
    """
    if is_signed(request):
        return verify(request)
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    if scheme == SCHEME:
        secret = intake_settings().harbor_secret
        if not secret or not constant_time_compare(credentials, secret):
            raise unauthorized("the secret is wrong, or none is set here")
    elif not may(Scope.REPORT)(request):
        raise unauthorized(f"no valid authorization was sent; {TAKES}")
    return None
