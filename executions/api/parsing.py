"""Parse the body of a request: JSON, bounded in size (DATA_UPLOAD_MAX_MEMORY_SIZE) and in nesting."""

import json
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from executions.text import refuse_nesting


class BoundedParser(Parser):
    """Ninja turns an error of `parse_body` into an HttpError 400, whose cause is told in the answer."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            data = json.loads(request.body, parse_constant=_refuse)
            refuse_nesting(data)
        except RecursionError:
            raise ValueError("more nested levels than can be read") from None
        return data


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
