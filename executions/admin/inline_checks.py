"""Check an ExecutionInline of a project when Django checks the project."""

from typing import Any

from django.contrib.admin.checks import BaseModelAdminChecks
from django.core.checks import CheckMessage, Error

from harbor_refresh.executions.status import MAX_VENDOR
from harbor_refresh.executions.text import is_text


class ExecutionInlineChecks(BaseModelAdminChecks):
    """Those of an inline ask for a foreign key to the model of the page, and for the forms of a formset."""

    def check(self, admin_obj: Any, **kwargs: object) -> list[CheckMessage]:
        found: list[CheckMessage] = list(super().check(admin_obj, **kwargs))
        if not is_text(admin_obj.vendor_type, MAX_VENDOR, at_least=1):
            found.append(
                Error(
                    "The inline does not say whose executions it shows.",
                    hint='Write `vendor_type = "UPGRADE"`, the name that is given to start().',
                    obj=type(admin_obj),
                    id="harbor_executions.E003",
                )
            )
        return found
